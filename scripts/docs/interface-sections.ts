import { CATALOGUE_TABLES } from '../../src/indexer/catalogue/catalogue.ts'
import { CONNECTION_FUNCTIONS } from '../../src/indexer/catalogue/connection-functions.ts'
import { SETTINGS } from '../../src/indexer/session/setting-list.ts'
import { table } from './markdown.ts'

/** What the query interface offers besides the tables: for tools that ask before they query. */
export function interfaceSections(): string[] {
  const honoured = SETTINGS.filter(({ effect }) => effect !== 'without effect')
  const ignored = Map.groupBy(
    SETTINGS.filter(({ effect }) => effect === 'without effect'),
    ({ help }) => help,
  )
  return [
    '## System tables',
    'On the embedded engine the databases `system` and `information_schema` (also `INFORMATION_SCHEMA`) describe the tables above and the interface itself; they contain nothing of the engine or of other customers. With ClickHouse only SHOW, DESCRIBE and EXISTS describe the tables.',
    table(
      ['table', 'content', 'columns'],
      CATALOGUE_TABLES.map(({ database, name, help, columns }) => [
        `\`${database}.${name}\``,
        help,
        columns.map((column) => `\`${column.name}\``).join(', '),
      ]),
    ),
    '## Statements besides SELECT',
    table(
      ['statement', 'effect'],
      [
        [
          '`SHOW DATABASES`, `SHOW TABLES [FROM db]`, `SHOW [FULL] COLUMNS FROM t [FROM db]`, `SHOW FUNCTIONS`, `SHOW [CHANGED] SETTINGS`, each with `[NOT] LIKE` or `ILIKE` and `LIMIT`; `SHOW CREATE`, `SHOW SETTING name`',
          'describe what may be queried',
        ],
        ['`DESCRIBE t`, `DESCRIBE (SELECT …)`, `EXISTS t`', 'columns of a table or of a query; the query is not run'],
        [
          '`EXPLAIN [PLAN] SELECT …`, `EXPLAIN SYNTAX SELECT …`',
          'embedded engine only: the steps of the statement as it is written, or its text; it is checked and not run',
        ],
        [
          '`SET name = value, …`, `USE db`',
          'for the later statements with the same `session_id`; without one, no effect',
        ],
      ],
    ),
    `${CONNECTION_FUNCTIONS.map((name) => `\`${name}()\``).join(', ')} return values of the connection: the ClickHouse release whose interface is offered, the own database user, the name of this server. They reach no engine.`,
    '## Settings',
    'Given in the URL, after SETTINGS, or with SET in a session. A setting that is not listed here is refused (115 UNKNOWN_SETTING).',
    table(
      ['setting', 'values', 'default', 'meaning'],
      honoured.map(({ name, type, value, effect, help }) => [
        `\`${name}\``,
        Array.isArray(effect) ? `only ${effect.join(', ')}` : type,
        value === '' ? '' : `\`${value}\``,
        help,
      ]),
    ),
    'Accepted without effect, because they concern:',
    ...[...ignored].map(([help, settings]) => `- ${help}: ${settings.map(({ name }) => `\`${name}\``).join(', ')}`),
  ]
}
