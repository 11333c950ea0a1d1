import { FORMAT_NAMES } from '../../src/indexer/formats/formats.ts'
import { post, send, type WorkCase } from './work-case.ts'

/** Close to the longest statement, which is 256 KiB (QUERY_BYTES_MAX). */
const STATEMENT_BYTES = 250_000

const times = (count: number, of: (at: number) => string, by = ','): string =>
  Array.from({ length: count }, (_, at) => of(at)).join(by)
const columns = (count: number): string => `(select ${times(count, (at) => `1 as c${at}`)})`

/** A million rows from the few blocks of a new chain. */
const LARGE_RESULT =
  'select a.slot, a.blockhash, b.blockhash from blocks a cross join blocks b cross join blocks c cross join blocks d limit 1000000'

/** Statements that are hard to scan, to parse or to plan; none of them needs data. */
const STATEMENTS: Readonly<Record<string, string>> = {
  'a parameter of spaces': `select {a:${' '.repeat(STATEMENT_BYTES)}`,
  'open parentheses': `select 1 in ${'('.repeat(STATEMENT_BYTES)}`,
  'nested parentheses': `select ${'('.repeat(20_000)}1${')'.repeat(20_000)}`,
  'an open string': `select '${'a'.repeat(STATEMENT_BYTES)}`,
  'an open comment': `select /*${'/*'.repeat(STATEMENT_BYTES / 2)}`,
  'many comments': `select ${'/**/'.repeat(STATEMENT_BYTES / 4)}1`,
  'many dashes': `select ${'-'.repeat(STATEMENT_BYTES)}1`,
  'many columns': `select ${'1,'.repeat(STATEMENT_BYTES / 2)}1`,
  'a long sum': `select ${'1+'.repeat(STATEMENT_BYTES / 2)}1`,
  'a long sum with groups': `select slot${'+1'.repeat(3_000)} from blocks group by slot`,
  'deep sums with groups': `select ${Array.from({ length: 40 }, () => `slot${'+1'.repeat(240)}`).join(',')} from blocks group by slot`,
  'aliases of aliases': `select slot as a0,${Array.from({ length: 40 }, (_, at) => `a${at}+a${at} as a${at + 1}`).join(',')} from blocks group by slot`,
  'many joins with conditions': `select 1 from blocks a ${Array.from({ length: 400 }, (_, at) => `join blocks b${at} on a.slot = b${at}.slot`).join(' ')}`,
  'many unions': `${'select 1 union all '.repeat(3_000)}select 1`,
  'many joins': `select 1 from blocks ${'cross join blocks '.repeat(3_000)}`,
  'many common table expressions': `with ${Array.from({ length: 3_000 }, (_, at) => `t${at} as (select 1)`).join(',')} select 1`,
  'nested subqueries': `${'select * from ('.repeat(3_000)}select 1${')'.repeat(3_000)}`,
  'nested cases': `select ${'case when 1 then '.repeat(2_000)}1${' end'.repeat(2_000)}`,
  'many semicolons': `select 1${';'.repeat(STATEMENT_BYTES)}`,
  'many dots': `select a${'.a'.repeat(STATEMENT_BYTES / 2)}`,
  'many quotes': `select ${'""'.repeat(STATEMENT_BYTES / 2)}`,
  'many dollars': `select ${'$a$'.repeat(STATEMENT_BYTES / 3)}`,
  'many brackets': `select ${'['.repeat(STATEMENT_BYTES)}`,
  'many not': `select ${'not '.repeat(STATEMENT_BYTES / 4)}1`,
  'a long list': `select 1 in (${'1,'.repeat(STATEMENT_BYTES / 2)}1)`,
  'a long like': `select '${'a'.repeat(20_000)}' like '${'%a'.repeat(15_000)}'`,
  'a greedy expression': `select match('${'a'.repeat(30_000)}', '${'(a*)*'.repeat(2_000)}b')`,
  'a wide character': `select '${'\u{1F600}'.repeat(15_000)}'`,
  'a long number behind an alias': `with ${'9'.repeat(40_000)} as a select ${times(6_000, () => 'a')}`,
  'a long text behind an alias': `with '${'x'.repeat(200_000)}' as a select ${times(2_600, () => 'a')}`,
  'a text of quotes behind an alias': `with '${"''".repeat(100_000)}' as a select ${times(2_600, () => 'a')}`,
  'a long list behind an alias': `with [${times(900, () => `'${'x'.repeat(200)}'`)}] as a select ${times(2_600, () => 'a')}`,
  'a long set behind an alias': `with toString(slot) in (${times(2_000, () => `'${'x'.repeat(100)}'`)}) as a select ${times(2_600, () => 'a')} from blocks`,
  'a long text in a lambda': `with x -> concat(x, '${'x'.repeat(200_000)}') as f select ${times(2_600, () => "f('a')")}`,
  'a long name behind an alias': `with ${'A'.repeat(100_000)} as a select ${times(2_600, () => 'a')} from (select 1 as ${'a'.repeat(100_000)})`,
  'a long type': `select cast(1 as Tuple(${times(9_900, () => 'abcdefghijklmnopqrstuv')}))`,
  'a long pattern of SHOW': `show functions like '${'a'.repeat(STATEMENT_BYTES)}'`,
  'many names of many columns': `select ${times(3_000, () => 'C1')} from ${columns(2_000)}`,
  'many names with a table of many columns': `select ${times(2_000, () => 'Q.c1')} from ${columns(2_000)} q`,
  'unknown names in a call': `select concat(${times(5_000, (at) => `u${at}`)}) from ${columns(1_500)} group by c1`,
  'many conditions of an ANY JOIN': `select 1 from ${columns(500)} q any join (select ${times(500, (at) => `1 as d${at}`)}) w on ${times(1_000, (at) => `q.c${at % 500} = w.d${at % 500}`, ' and ')}`,
  'many columns of USING': `select 1 from ${columns(1_500)} q join ${columns(1_500)} w using (${times(1_500, (at) => `c${at}`)})`,
  'many columns of EXCEPT': `select * except (${times(2_000, (at) => `c${at}`)}) from ${columns(2_001)}`,
  'many columns of ORDER BY': `select ${times(2_400, (at) => `1 as c${at}`)} order by ${times(4_000, () => 'c2399')}`,
  'aliases of many unions': `with ${times(2_400, (at) => `1 as a${at}`)} select 1 union all (${times(49, () => `(${times(49, () => 'select 1', ' union all ')})`, ' union all ')})`,
  'many stars of many columns': `select ${times(5_000, () => '*')} from ${columns(2_000)}`,
  'many patterns of many columns': `select 1, ${times(2_000, () => `columns('${times(45, () => 'z', '|')}')`)} from ${columns(2_000)}`,
  'many uses of a large tuple': `select ${times(4_000, () => 't')} from (select (select ${times(5_000, () => '1')}) as t)`,
  'subqueries of a wide table behind an alias': `with w as ${columns(2_000)}, (select 1 from w) as a select ${times(5_000, () => 'a')}`,
  'BETWEEN inside of BETWEEN': `select 1${' between 1 and 1'.repeat(20)}`,
  'many time zones': `select ${times(2_800, () => "toDateTime(1,'Europe/Berlin')")}`,
}

/** The SQL endpoint: every format with a large result, and the statements above. */
export function sqlCases(): WorkCase[] {
  const ask = (name: string, statement: string, query = ''): WorkCase => ({
    name: `sql ${name}`,
    run: ({ http, indexerHeaders }) =>
      post(`${http.indexer}/${query}`, statement, { ...indexerHeaders, 'content-type': 'text/plain' }),
  })
  return [
    ...FORMAT_NAMES.map((format) => ask(`a large result as ${format}`, `${LARGE_RESULT} format ${format}`)),
    ask('a large result of a table', 'select * from transactions limit 1000000 format JSON'),
    ask('a large result compressed', `${LARGE_RESULT} format JSONEachRow`, '?enable_http_compression=1'),
    ...Object.entries(STATEMENTS).map(([name, statement]) => ask(name, statement)),
    ask('many parameters', 'select 1', `?${Array.from({ length: 1_500 }, (_, at) => `param_a${at}=1`).join('&')}`),
    ask('many settings', 'select 1', `?${Array.from({ length: 1_500 }, (_, at) => `max_threads${at}=1`).join('&')}`),
    ask('a long statement in the URL', '', `?query=${'select%20'.repeat(1_600)}`),
    {
      name: 'sql wrong credentials',
      run: ({ http }) =>
        send(`${http.indexer}/?query=select%201`, {
          headers: { authorization: `Basic ${Buffer.from(`a:${'b'.repeat(8_000)}`).toString('base64')}` },
        }),
    },
    { name: 'sql ping', run: ({ http }) => send(`${http.indexer}/ping`) },
  ]
}
