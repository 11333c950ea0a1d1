/**
 * Generates statements from a grammar that mixes ordinary and hostile parts: keywords as names, quotes and comments of every kind, letters that look
 * alike, aliases, and tables that are not published. Seeded, so that a run can be repeated.
 */

export type Fuzz = {
  readonly tables: readonly string[]
  /** Tables that are not published; their rows contain the canary. */
  readonly hidden: readonly string[]
  readonly functions: readonly string[]
  /** Calls that must be refused. */
  readonly hostileCalls: readonly string[]
  readonly keywords: readonly string[]
  /** Joins and clauses of one of the engines. */
  readonly joins: readonly string[]
  readonly ends: readonly string[]
}

const COLUMNS = [
  'version()',
  'user()',
  'system.tables.name',
  'slot',
  'leader',
  'tx_count',
  'block_time',
  'x',
  'y',
  '1',
  "'a'",
  '`slot`',
  '"slot"',
  't.slot',
  'count(*)',
]
const SPACES = [' ', ' ', ' ', ' ', '\n', '\t', '/**/', '/* x */', ' -- y\n', '\u00a0', '\ufeff', '\u2028', ' #! z\n']
const NAMES = ['t', 'u', 'x', 'y', '"t"', '`u`', 'Blocks', '"a b"', '"a""b"', '`q`', '"\u212a"', '"duc\u212adb_tables"']
const LITERALS = [
  '1',
  '0',
  '1_000',
  '1e3',
  '0xff',
  '.5',
  "'a'",
  "''",
  "'it''s'",
  "'\\\\'",
  "'\\''",
  "'\u212a'",
  "'--'",
  "'/*'",
  'NULL',
]
const OPERATORS = ['+', '-', '*', '/', '%', '=', '<>', '<', '>=', 'AND', 'OR', 'LIKE', '||', '!=', '==']

/** Generates one statement. `random` returns an integer below its argument. Hostile parts are rare, so that many statements pass. */
export function makeStatement(fuzz: Fuzz, random: (below: number) => number): string {
  const pick = <T>(from: readonly T[]): T => from[random(from.length)] as T
  const chance = (percent: number): boolean => random(100) < percent
  const names: string[] = []
  let budget = 12

  function query(depth: number): string {
    const outerNames = names.length
    const common = depth < 3 && chance(18) ? `WITH ${list(1 + random(2), () => commonTable(depth + 1))} ` : ''
    const text = `${common}${select(depth)}${chance(8) && depth < 3 ? ` ${pick(['UNION ALL', 'UNION DISTINCT', 'EXCEPT', 'INTERSECT'])} ${select(depth + 1)}` : ''}`
    // Sometimes a name is used where it is no longer in scope.
    if (!chance(4)) names.length = outerNames
    return text
  }

  function commonTable(depth: number): string {
    const name = chance(6) ? pick(fuzz.hidden) : pick(NAMES)
    const text = `${name} AS (${query(depth)})`
    names.push(name)
    return text
  }

  function select(depth: number): string {
    const parts = [`SELECT ${chance(5) ? 'DISTINCT ' : ''}${list(1 + random(3), () => aliased(depth))}`]
    if (chance(85)) parts.push(`FROM ${source(depth)}`)
    if (chance(30)) parts.push(`WHERE ${expression(depth)}`)
    if (chance(10)) parts.push(`GROUP BY ${list(1 + random(2), () => pick(COLUMNS))}`)
    if (chance(12)) parts.push(`ORDER BY ${list(1, () => expression(depth))}${chance(30) ? ' DESC' : ''}`)
    if (chance(12)) parts.push(`LIMIT ${random(9)}`)
    if (chance(4)) parts.push(pick(fuzz.ends))
    return parts.join(' ')
  }

  function source(depth: number): string {
    let text = table(depth)
    while (chance(22) && budget-- > 0) {
      if (chance(40)) text += `, ${table(depth)}`
      else
        text += ` ${pick(fuzz.joins)} JOIN ${table(depth)} ${chance(60) ? `ON ${expression(depth)}` : 'USING (slot)'}`
    }
    return text
  }

  function table(depth: number): string {
    const at = random(100)
    const named =
      at < 3
        ? pick(fuzz.hidden)
        : at < 5
          ? pick(fuzz.hostileCalls)
          : at < 20 && depth < 3 && budget-- > 0
            ? `(${query(depth + 1)})`
            : at < 35 && names.length > 0
              ? pick(names)
              : pick(fuzz.tables)
    if (chance(30)) return `${named} ${chance(50) ? 'AS ' : ''}${alias()}`
    return named
  }

  function alias(): string {
    return chance(6) ? pick(fuzz.keywords) : pick(NAMES)
  }

  function aliased(depth: number): string {
    return `${expression(depth)}${chance(20) ? ` ${chance(70) ? 'AS ' : ''}${alias()}` : ''}`
  }

  function expression(depth: number): string {
    if (budget-- <= 0) return pick(COLUMNS)
    const at = random(100)
    if (at < 40) return pick(COLUMNS)
    if (at < 55) return pick(LITERALS)
    if (at < 72) return `${expression(depth)} ${pick(OPERATORS)} ${expression(depth)}`
    if (at < 84) return `${pick(fuzz.functions)}(${expression(depth)})`
    if (at < 88) return `(${expression(depth)})`
    if (at < 91 && depth < 3) return `(${query(depth + 1)})`
    if (at < 94 && depth < 3) return `${pick(COLUMNS)} ${chance(30) ? 'NOT ' : ''}IN ${inSet(depth)}`
    if (at < 96) return `CASE WHEN ${expression(depth)} THEN ${expression(depth)} ELSE ${pick(LITERALS)} END`
    if (at < 98) return pick(fuzz.keywords)
    return pick(fuzz.hostileCalls)
  }

  function inSet(depth: number): string {
    const at = random(10)
    if (at < 4) return `(${list(1 + random(3), () => pick(LITERALS))})`
    if (at < 7) return `(${query(depth + 1)})`
    if (at < 8) return `(${pick(fuzz.hidden)})`
    return pick([...fuzz.tables, ...fuzz.hidden, ...names])
  }

  function list(count: number, make: () => string): string {
    return Array.from({ length: count }, make).join(', ')
  }

  return broken(query(0).replaceAll(' ', () => (chance(6) ? pick(SPACES) : ' ')))

  /** Sometimes removes or inserts something in the middle. */
  function broken(text: string): string {
    if (!chance(12)) return text
    const [at, to] = [random(text.length), random(6)]
    const put = pick([
      "'",
      '"',
      '`',
      '(',
      ')',
      ',',
      '.',
      ';',
      '--',
      '/*',
      '*/',
      '{',
      '}',
      '\\',
      '$$',
      '\0',
      '\u2003',
      'K',
    ])
    return text.slice(0, at) + (chance(50) ? put : '') + text.slice(at + to)
  }
}

/** In the values, names and comments of everything that no customer may see. */
export const CANARY = 'canary_3971'

export const DUCK_FUZZ: Fuzz = {
  tables: [
    'blocks',
    'transactions',
    'rewards',
    'coverage',
    'solana.blocks',
    'Blocks',
    '"blocks"',
    'accounts',
    'unnest([1, 2])',
    ...[
      'system.tables',
      'system.columns',
      'system.one',
      '`system`.databases',
      'information_schema.tables',
      'system.settings',
    ],
  ],
  hidden: [
    `base.${CANARY}`,
    `memory.base.${CANARY}`,
    CANARY,
    `${CANARY}_files.main.t`,
    `fn.covered`,
    ...[
      'duckdb_tables',
      'duckdb_databases',
      'duckdb_columns',
      'pg_class',
      'sqlite_master',
      'system.duckdb_tables',
      'information_schema.character_sets',
      'memory.information_schema.tables',
    ],
    ...['main.duckdb_views', 'system.main.pg_class', '"duckdb_schemas"', "'/etc/passwd'"],
  ],
  functions: ['max', 'count', 'abs', 'lower', 'toString', 'length', 'uniqExact', 'main.abs', 'coalesce', '"max"'],
  hostileCalls: [
    ...['duckdb_tables()', 'duckdb_databases()', 'system.main.duckdb_tables()', "query('FROM duckdb_tables')"],
    ...[
      `query_table('${CANARY}')`,
      "read_text('/etc/passwd')",
      `getvariable('${CANARY}')`,
      "current_setting('temp_directory')",
    ],
    ...['pragma_table_info(1)', "COLUMNS('.*')", 'duckdb_settings()', "glob('/*')", 'pg_catalog.abs(1)'],
  ],
  keywords: [
    'FINAL',
    'WINDOW',
    'OFFSET',
    'QUALIFY',
    'EXCEPT',
    'SAMPLE',
    'PIVOT',
    'SUMMARIZE',
    'AT',
    'FETCH',
    'LATERAL',
    'FROM',
  ],
  joins: ['', 'LEFT', 'CROSS', 'SEMI', 'ASOF', 'POSITIONAL', 'NATURAL', 'FULL OUTER'],
  ends: [
    'OFFSET 1',
    'QUALIFY 1',
    'USING SAMPLE 3',
    'FORMAT JSON',
    'SETTINGS max_threads = 1',
    'WINDOW w AS (ORDER BY slot)',
    'LIMIT 5%',
    ';',
  ],
}

export const CLICKHOUSE_FUZZ: Fuzz = {
  tables: [
    'blocks',
    'transactions',
    'rewards',
    'coverage',
    'chain.blocks',
    '`blocks`',
    '"chain"."blocks"',
    'accounts',
    'numbers(3)',
  ],
  hidden: [
    `${CANARY}.secret`,
    `\`${CANARY}\`.\`secret\``,
    `${CANARY} . secret`,
    `"${CANARY}"."secret"`,
    'chain_base._progress',
    ...['system.tables', 'system.databases', 'system.columns', 'information_schema.tables', 'secret', CANARY],
  ],
  functions: ['max', 'count', 'abs', 'lower', 'toString', 'length', 'uniqExact', 'sumIf', 'coalesce', '`max`'],
  hostileCalls: [
    ...[
      `merge('${CANARY}', '.*')`,
      `remote('127.0.0.1', ${CANARY}.secret)`,
      `dictGet('${CANARY}.d', 'a', 1)`,
      'hostName()',
    ],
    ...[`joinGet('${CANARY}.secret', 'a', 1)`, `view(SELECT * FROM ${CANARY}.secret)`, `in(1, ${CANARY}.secret)`],
    ...[`loop(${CANARY}.secret)`, `{p:Identifier}`, `{p:Enum8('}`, `hasColumnInTable('${CANARY}', 'secret', 'a')`],
  ],
  keywords: [
    ...[
      'FINAL',
      'WINDOW',
      'OFFSET',
      'QUALIFY',
      'EXCEPT',
      'SAMPLE',
      'FETCH',
      'INTERSECT',
      'ARRAY',
      'ASC',
      'AND',
      'BY',
      'FILTER',
    ],
    ...['SEMI', 'PASTE', 'APPLY', 'FROM', 'SELECT', 'WHERE', 'USING', 'ON', 'TOP', 'PARALLEL', 'LATERAL', 'JOIN', 'IN'],
  ],
  joins: ['', 'ANY LEFT', 'CROSS', 'SEMI LEFT', 'GLOBAL', 'INNER', 'ARRAY', 'PASTE', 'FULL OUTER', 'ASOF'],
  ends: [
    ...[
      'OFFSET 1',
      'QUALIFY 1',
      'WITH TOTALS',
      'FORMAT JSON',
      'SETTINGS max_threads = 1',
      'WINDOW w AS (ORDER BY slot)',
      ';',
    ],
    ...[
      'FETCH FIRST 1 ROWS ONLY',
      'LIMIT 1 BY slot',
      "ARRAY JOIN [1] AS z, ['x'] AS leader",
      `INTO OUTFILE '/tmp/${CANARY}'`,
    ],
  ],
}
