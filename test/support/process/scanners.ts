import { CREDENTIAL_SOURCES, collectLogin, collectToken } from '../../../src/access/credentials.ts'
import { parseDuration } from '../../../src/core/human-units.ts'
import { redactText } from '../../../src/core/redact.ts'
import { requestTarget } from '../../../src/execution/api/request-target.ts'
import { slotOf } from '../../../src/gateway/pubsub/splice.ts'
import { immutableCall } from '../../../src/gateway/rpc/immutable-call.ts'
import { DATABASES } from '../../../src/indexer/catalogue/catalogue.ts'
import { replaceConnectionFunctions } from '../../../src/indexer/catalogue/connection-functions.ts'
import { readShow } from '../../../src/indexer/catalogue/show.ts'
import { applyClickHousePolicy } from '../../../src/indexer/clickhouse/policy/policy.ts'
import { compileStatement } from '../../../src/indexer/dialect/compile-statement.ts'
import { QueryError } from '../../../src/indexer/query/error.ts'
import { readQueryRequest } from '../../../src/indexer/query/request.ts'
import { STATEMENT_LENGTH_MAX } from '../../../src/indexer/query/sql-tokens.ts'
import { parseStatement } from '../../../src/indexer/query/statement.ts'
import { PUBLISHED_NAMES } from '../../../src/indexer/schema.ts'
import { parseExactJson } from '../../../src/localnet/rpc/json.ts'
import { decodeBase64, describeBase58Fault } from '../../../src/localnet/rpc/text-codecs.ts'
import { findKeyPositions } from '../../../src/platform/config/toml-positions.ts'
import { ResponseReader } from '../../../src/platform/http/client/response-reader.ts'
import { acceptsGzip } from '../../../src/platform/http/request-headers.ts'
import { parseFastPathHead } from '../../../src/platform/http/server/fast-path-head.ts'
import { givenRequestId } from '../../../src/platform/http/server/request-id.ts'
import { createClientAddress } from '../../../src/platform/net/client-address.ts'
import { parseAddressPort } from '../../../src/platform/net/ip-range.ts'
import { decodeBase58 } from '../../../src/solana/crypto/base58.ts'
import { readRequestBody } from '../../../src/solana/json/json-rpc.ts'
import { contextSlotOf, errorCodeOf, isJsonRpcBody, slotResultOf } from '../../../src/upstreams/extract-slot.ts'
import { readNotification } from '../../../src/upstreams/ws/frame-id.ts'

/** A function that scans external text, with its worst-case inputs, each a function of the length. */
export type Scanner = {
  readonly name: string
  /** The maximum input length, where there is one. */
  readonly sizeMax?: number
  readonly scan: (text: string) => unknown
  readonly inputs: Readonly<Record<string, (size: number) => string>>
}

const STATEMENT_CHARS = STATEMENT_LENGTH_MAX

const many =
  (turn: string, before = '', after = '') =>
  (size: number) =>
    before + turn.repeat(Math.ceil(size / turn.length)) + after

const series = (count: number, of: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => of(at)).join(', ')

const JSON_TEXTS = {
  'open arrays': many('['),
  'open objects': many('{"a":'),
  'nested arrays': (size: number) => '['.repeat(size / 2) + ']'.repeat(size / 2),
  'a batch': many('{"jsonrpc":"2.0","id":1,"method":"getSlot"},', '[', '1]'),
  'members of one object': many('"a":1,', '{', '"b":2}'),
  'members of the same name': many('"method":"a",', '{', '"id":1}'),
  'a long string': many('a', '"', '"'),
  escapes: many('\\u0061', '{"method":"', '"}'),
  backslashes: many('\\\\', '"'),
  quotes: many('"'),
  digits: many('1'),
  'numbers with a fraction': many('1.5,', '[', '1]'),
  blanks: many(' ', '', '1'),
  'blanks in an object': many(' ', '{"result":'),
  results: many('"result": '),
  subscriptions: many('"subscription": 1 ', '{"method":"slotNotification","params":{'),
}

const STATEMENTS = {
  'blanks in a parameter': many(' ', 'select {a:'),
  'open parentheses': many('(', 'select 1 in '),
  'open parentheses, one each': many('(1) in ', 'select '),
  'common tables': (size: number) =>
    `with ${Array.from({ length: size / 20 }, (_, at) => `a${at} as (select 1)`).join()} select 1`,
  settings: many('a = 1,', 'select 1 settings ', 'a = 1'),
  formats: many('format JSON ', 'select 1 '),
  unions: many('select 1 union all ', '', 'select 1'),
  'a sum': many('1 + ', 'select ', '1'),
  prefixes: many('not - ', 'select ', '1'),
  cases: many('case when ', 'select '),
  intervals: many('interval ', 'select '),
  'calls with parameters': many('quantile(0.5)(', 'select '),
  'quantiles side by side': many('quantile(0.5)(x), ', 'select ', '1'),
  combinators: many('If', 'select sum', '(1)'),
  types: many('Array(', 'select {a:', '}'),
  'a list': many('1,', 'select 1 in (', '1)'),
  names: many('a.', 'select ', 'a'),
  joins: many('join blocks ', 'select 1 from blocks '),
  semicolons: many(';', 'select 1'),
  comments: many('/**/', 'select '),
  strings: many("'a',", 'select ', '1'),
  words: many('a', 'select '),
  describe: many('a.', 'describe '),
  'patterns of SHOW': many('a', "show functions like '", "'"),
  'common tables of many queries': (size: number) =>
    `with ${series(size / 40, (at) => `a${at} as (select 1)`)} select 1 ${'union all with b as (select 1) select 1 '.repeat(size / 80)}`,
  'types of CAST': many('abcdefghijklmnopqrstuv,', 'select cast(1 as Tuple(', 'a))'),
}

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')
const clientAddress = createClientAddress(['127.0.0.1'])

export const SCANNERS: readonly Scanner[] = [
  {
    name: 'statements for ClickHouse',
    sizeMax: STATEMENT_CHARS,
    scan: (text) => applyClickHousePolicy(parseStatement(text), { tables: PUBLISHED_NAMES, database: 'chain' }),
    inputs: STATEMENTS,
  },
  {
    name: 'statements for the embedded engine',
    sizeMax: STATEMENT_CHARS,
    scan: (text) => compileStatement(parseStatement(text), { given: { a: '1' } }),
    inputs: {
      ...STATEMENTS,
      'aliases and common table expressions': (size) =>
        `with ${series(size / 32, (at) => `1 as a${at}, q${at} as (select 1)`)} select 1`,
      'names of columns': (size) =>
        `select ${'C1,'.repeat(size / 20)}1 from (select ${series(size / 20, (at) => `1 as c${at}`)})`,
      'names with tables': (size) =>
        `select ${'Q.c1,'.repeat(size / 20)}1 from (select ${series(size / 20, (at) => `1 as c${at}`)}) q`,
      'unknown names': (size) =>
        `select concat(${series(size / 20, (at) => `u${at}`)}) from (select ${series(size / 20, (at) => `1 as c${at}`)}) group by c1`,
      'columns in ORDER BY': (size) =>
        `select ${series(size / 20, (at) => `1 as c${at}`)} order by ${'c1,'.repeat(size / 20)}c1`,
      'columns after EXCEPT': (size) =>
        `select * except (${series(size / 20, (at) => `c${at}`)}) from (select 1 as x, ${series(size / 20, (at) => `1 as c${at}`)})`,
      'a long constant behind an alias': (size) =>
        `with '${'x'.repeat(size / 2)}' as a select ${'a,'.repeat(size / 40)}1`,
      'a long number behind an alias': (size) => `with ${'9'.repeat(size / 2)} as a select ${'a,'.repeat(size / 40)}1`,
      'stars of many columns': (size) =>
        `select ${'*,'.repeat(size / 20)}1 from (select ${series(size / 20, (at) => `1 as c${at}`)})`,
    },
  },
  {
    name: 'queries about the tables',
    sizeMax: STATEMENT_CHARS,
    scan: (text) => readShow(parseStatement(text).tokens, { database: 'solana', settings: {} }),
    inputs: STATEMENTS,
  },
  {
    name: 'names of system tables and functions about the connection',
    sizeMax: STATEMENT_CHARS,
    scan: (text) =>
      replaceConnectionFunctions(parseStatement(text).tokens, {
        user: 'u',
        database: 'solana',
        hostName: 'h',
        uptimeSeconds: 1,
        timezone: 'UTC',
      }),
    inputs: {
      ...STATEMENTS,
      tables: many('system.tables t,', 'select ', '1'),
      calls: many('version(),', 'select ', '1'),
    },
  },
  {
    name: 'values of lists given as parameters',
    sizeMax: STATEMENT_CHARS,
    scan: (text) =>
      compileStatement(parseStatement('select {a:Array(String)}, {b:String}'), { given: { a: text, b: text } }),
    inputs: {
      numbers: many('1,', '[', '1]'),
      strings: many("'a',", '[', '1]'),
      quotes: many("'"),
      escapes: many('\\t'),
    },
  },
  {
    name: 'URLs of queries',
    scan: (text) => readQueryRequest(text, { format: undefined, database: undefined }, DATABASES),
    inputs: { fields: many('a=1&'), 'one field': many('a', 'query='), percents: many('%41'), plus: many('+') },
  },
  {
    name: 'errors of queries',
    scan: (text) => new QueryError('SYNTAX_ERROR', text).body,
    inputs: { parentheses: many('('), capitals: many('A', '('), both: many('(AAA'), prefixes: many('Exception: ') },
  },
  {
    name: 'bodies of JSON-RPC requests',
    scan: (text) => readRequestBody(text, { depthMax: 64, batchItemsMax: 1_000_000 }),
    inputs: JSON_TEXTS,
  },
  { name: 'JSON of the local chain', scan: parseExactJson, inputs: JSON_TEXTS },
  {
    name: 'parameters of cacheable calls',
    scan: (text) => immutableCall('getBlock', text),
    inputs: { ...JSON_TEXTS, 'blanks in a list': many(' ', '[') },
  },
  {
    name: 'responses of nodes',
    scan: (text) => {
      const body = bytes(text)
      return [contextSlotOf(body), slotResultOf(body), errorCodeOf(body), isJsonRpcBody(body)]
    },
    inputs: JSON_TEXTS,
  },
  {
    name: 'frames of nodes',
    scan: (text) => [readNotification(bytes(text)), slotOf('slot', bytes(text)), slotOf('account', bytes(text))],
    inputs: { ...JSON_TEXTS, slots: many('"slot": '), 'closing braces': many('} ', '"subscription": 1') },
  },
  {
    name: 'heads of HTTP requests',
    scan: (text) => parseFastPathHead(bytes(text)),
    inputs: {
      fields: many('a: b\r\n', 'POST / HTTP/1.1\r\n'),
      'one field': many(' ', 'POST / HTTP/1.1\r\na:', '\r\n'),
      target: many('?', 'POST /', ' HTTP/1.1\r\n'),
      'no end of line': many('a', 'POST / HTTP/1.1\r\n'),
    },
  },
  {
    name: 'HTTP responses',
    scan: (text) => {
      const reader = new ResponseReader({ onHead() {}, onBody() {}, onEnd() {} } as never, {})
      reader.begin()
      return reader.push(bytes(text))
    },
    inputs: {
      fields: many('a: b\r\n', 'HTTP/1.1 200 OK\r\n'),
      chunks: many('1\r\na\r\n', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'),
      'an extension': many(';', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1'),
      'ends of line': many('\r\n'),
    },
  },
  {
    name: 'credentials',
    sizeMax: 16_384,
    scan: (text) => [
      collectToken(CREDENTIAL_SOURCES.rpc, ['authorization', text, 'x-token', text], text),
      collectLogin(['authorization', text]),
    ],
    inputs: {
      blanks: many(' ', 'Basic'),
      base64: many('A', 'Basic ', '!'),
      bearer: many(' ', 'Bearer'),
      fields: many('api-key=a&'),
      percents: many('%'),
    },
  },
  {
    name: 'other header fields',
    scan: (text) => [
      acceptsGzip(text),
      givenRequestId(['x-request-id', text, 'traceparent', text]),
      clientAddress({ headers: { 'x-forwarded-for': text }, socket: { remoteAddress: '127.0.0.1' } } as never),
    ],
    inputs: {
      commas: many(','),
      weights: many('gzip;q=0.0 ,'),
      blanks: many(' ', 'gzip;q'),
      semicolons: many(';'),
      addresses: many('127.0.0.1, '),
      zeros: many('0', 'gzip;q=0.'),
    },
  },
  {
    name: 'URLs of requests',
    scan: (text) => [requestTarget({ url: text }), parseAddressPort(text)],
    inputs: {
      slashes: many('/'),
      letters: many('a'),
      schemes: many('a://'),
      fields: many('a=1&', '/?'),
      colons: many(':'),
    },
  },
  {
    name: 'log messages',
    scan: redactText,
    inputs: {
      schemes: many('/x Bearer abcdef '),
      paths: many('(/'),
      'an invalid path before a scheme': many('(/', '', '(Bearer abcdef'),
      'many invalid paths': many('(/x(Bearer abcdef '),
      'paths before a scheme': many('(/a/Bearer abcdef '),
      addresses: many('://a'),
      names: many('token = '),
      blanks: many(' ', 'password'),
      quotes: many('authorization"'),
      queries: many('a?b'),
      tokens: many('slc_'),
      colons: many(':', 'x-token'),
    },
  },
  {
    name: 'the configuration',
    scan: findKeyPositions,
    inputs: {
      comments: many('#'),
      lines: many('a = 1\n'),
      tables: many('[a]\n'),
      strings: many('"', 'a = '),
      'open lists': many('[', 'a = '),
      'open tables': many('{a=', 'a = '),
      dots: many('a.'),
      blanks: many(' ', 'a ='),
      'strings of several lines': many('"""\n', 'a = '),
    },
  },
  { name: 'durations', scan: parseDuration, inputs: { digits: many('1'), parts: many('1h '), blanks: many(' ', '1') } },
  {
    name: 'base58 and base64',
    scan: (text) => {
      for (const read of [decodeBase58, decodeBase64, describeBase58Fault])
        try {
          read(text)
        } catch {
          continue
        }
    },
    inputs: { zeros: many('1'), letters: many('z'), padding: many('='), others: many('!'), base64: many('AAAA') },
  },
]
