import { QUERY_BYTES_MAX } from '../../src/indexer/http.ts'
import { QUERY_ERRORS } from '../../src/indexer/query/error.ts'
import { FORMAT_NAMES } from '../../src/indexer/query/formats.ts'
import { table } from './markdown.ts'

const MEANINGS: Partial<Record<keyof typeof QUERY_ERRORS, string>> = {
  AUTHENTICATION_FAILED: 'user, password or token missing or wrong; which of them is not told',
  SYNTAX_ERROR: 'the statement cannot be read',
  READONLY: 'anything but a question',
  UNKNOWN_TABLE: 'a table that is not published',
  UNKNOWN_FUNCTION: 'a function that is not offered on the embedded engine',
  UNKNOWN_FORMAT: 'a format that is not offered on the embedded engine; the answer names those that are',
  UNKNOWN_SETTING: 'a setting that a customer may not give',
  UNKNOWN_QUERY_PARAMETER: 'a parameter without a value',
  QUERY_IS_TOO_LARGE: `more than ${QUERY_BYTES_MAX} bytes of question, after unpacking`,
  TOO_DEEP_AST: 'nested too deeply',
  TOO_BIG_AST: 'too many parts, or too many tables',
  TIMEOUT_EXCEEDED: 'longer than `indexer.query.secondsMax`, or than `max_execution_time` asked for',
  TOO_MANY_ROWS_OR_BYTES: 'more rows than `indexer.query.rowsMax`: an error, never a shorter answer',
  TOO_MANY_BYTES: 'more bytes than `indexer.query.bytesMax`',
  MEMORY_LIMIT_EXCEEDED: 'more memory than the database has for it',
  TOO_MANY_SIMULTANEOUS_QUERIES:
    'too many at a time, or after a query that had to be ended by force; `Retry-After` says when',
  QUOTA_EXPIRED: 'the budget of the token is used up; `Retry-After` says when it is not',
  SOCKET_TIMEOUT: 'the database is being started again, or the ClickHouse behind is away; `Retry-After`',
}

/** The query door of the indexer. */
export function indexerSection(): string[] {
  return [
    '## Indexer (8123)',
    "ClickHouse's HTTP interface, for `@clickhouse/client`, curl and whatever else speaks it. Every question carries the database user and password (`Authorization: Basic`, or `X-ClickHouse-User` and `X-ClickHouse-Key`) **and** the token of the same subscription in `x-token`. Missing or wrong in either half is the same 401. Credentials in the address do not count. Tables: [schema.md](schema.md).",
    table(
      ['method', 'path', 'credentials', 'answer'],
      [
        ['GET', '/?query=…', 'yes', 'the rows'],
        [
          'POST',
          '/',
          'yes',
          'the rows; the body is the question, after `query=…` of the address where there is one; gzip is taken',
        ],
        ['GET', '/ping, /, /replicas_status', 'no', '`Ok.`'],
      ],
    ),
    'In the address: `query`, `query_id`, `database` (only the own), `default_format`, `param_NAME` for `{NAME:Type}` in the question, `wait_end_of_query`, `buffer_size`, and of settings `max_execution_time`, `max_result_rows`, `result_overflow_mode=throw`, `output_format_json_quote_64bit_integers`, `enable_http_compression`; `max_threads`, `readonly` and those for progress in headers are taken and have no effect. Sessions, roles and native compression are refused.',
    `Formats of the embedded engine: ${FORMAT_NAMES.map((name) => `\`${name}\``).join(', ')}. Parquet, Arrow and the other binary formats are given where the engine is the operator's ClickHouse. 64-bit numbers are quoted in JSON.`,
    'Every answer has `X-ClickHouse-Query-Id`, `X-ClickHouse-Format`, `X-ClickHouse-Summary` with rows, bytes and time, and `X-Sluice-Coverage-Slot`: everything up to that slot was in the tables. A client that goes away takes its query along. Errors are text, `Code: N. DB::Exception: … (NAME)`, with the number in `X-ClickHouse-Exception-Code`:',
    table(
      ['code', 'name', 'HTTP', 'when'],
      Object.entries(MEANINGS).map(([name, meaning]) => {
        const [code, http] = QUERY_ERRORS[name as keyof typeof QUERY_ERRORS]
        return [code, `\`${name}\``, http, meaning]
      }),
    ),
  ]
}
