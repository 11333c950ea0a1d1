import { FORMAT_NAMES } from '../../src/indexer/formats/formats.ts'
import { QUERY_ERRORS } from '../../src/indexer/query/error.ts'
import { QUERY_BYTES_MAX } from '../../src/indexer/read-query.ts'
import { table } from './markdown.ts'

const MEANINGS: Partial<Record<keyof typeof QUERY_ERRORS, string>> = {
  AUTHENTICATION_FAILED:
    'user, password or token is missing or wrong, and the text does not show which; or the cause, if the subscription of a valid token is suspended, expired, cancelled or does not include this product',
  SYNTAX_ERROR: 'the statement cannot be parsed',
  READONLY: 'a statement other than a query',
  UNKNOWN_TABLE: 'a table that is not published',
  UNKNOWN_FUNCTION: 'a function that is not offered on the embedded engine',
  UNKNOWN_FORMAT: 'a format that is not offered on the embedded engine; the error lists the available ones',
  UNKNOWN_SETTING: 'a setting that is not accepted',
  SESSION_NOT_FOUND: 'with `session_check=1`: the session has ended, or was never begun',
  SESSION_IS_LOCKED: 'another statement runs in the session',
  INVALID_SESSION_TIMEOUT: '`session_timeout` is not a number of seconds up to 3600',
  USER_SESSION_LIMIT_EXCEEDED: 'too many sessions; see `Retry-After`',
  UNKNOWN_QUERY_PARAMETER: 'a parameter without a value',
  QUERY_IS_TOO_LARGE: `a query of more than ${QUERY_BYTES_MAX} bytes, after decompression`,
  TOO_DEEP_AST: 'nested too deeply',
  TOO_BIG_AST: 'too many parts, or too many tables',
  TIMEOUT_EXCEEDED: 'longer than `indexer.query.secondsMax`, or than the requested `max_execution_time`',
  TOO_MANY_ROWS_OR_BYTES:
    'more rows than `indexer.query.rowsMax`, and on ClickHouse more bytes than `indexer.query.bytesMax`: an error, never a truncated result',
  TOO_MANY_BYTES: 'more bytes than `indexer.query.bytesMax`',
  MEMORY_LIMIT_EXCEEDED: 'more memory than a query may use',
  TOO_MANY_SIMULTANEOUS_QUERIES: 'too many concurrent queries, or after a query that was killed; see `Retry-After`',
  QUOTA_EXPIRED:
    'the budget of the token is used up, or without a login 200 requests a second of one address (`openRequests`); see `Retry-After`',
  SOCKET_TIMEOUT: 'the database restarts, or the ClickHouse server is unreachable; see `Retry-After`',
}

/** The query endpoint of the indexer. */
export function indexerSection(): string[] {
  return [
    '## Indexer (8123)',
    "ClickHouse's HTTP interface, for `@clickhouse/client`, curl and other clients. Every query needs the database user and password (`Authorization: Basic`, or `X-ClickHouse-User` and `X-ClickHouse-Key`) **and** the token of the same subscription in `x-token`. If either is missing or wrong, the response is the same 401. Credentials in the URL are refused: proxies log URLs. Web pages of other origins may query only if `indexer.corsOrigins` lists their origin. Tables: [schema.md](schema.md).",
    table(
      ['method', 'path', 'credentials', 'response'],
      [
        ['GET', '/?query=…', 'yes', 'the rows'],
        [
          'POST',
          '/',
          'yes',
          'the rows; the body is the query, appended to `query=…` of the URL if present; gzip is accepted. A multipart/form-data body has the fields `query` and `param_NAME`',
        ],
        ['GET', '/ping, /, /replicas_status', 'no', '`Ok.`'],
      ],
    ),
    'URL parameters: `query`, `query_id`, `database`, `default_format`, `param_NAME` for `{NAME:Type}` in the query, `wait_end_of_query`, `buffer_size`, `compress`, `decompress`, `session_id`, `session_timeout`, `session_check`, and the settings that [schema.md](schema.md#settings) lists. Roles and quota keys are refused.',
    'A session keeps what SET and USE change, for `session_timeout` seconds after its last statement (60, at most 3600); one statement runs in it at a time, and only its own subscription sees it. `indexer.query.sessionsPerSubscription` and `indexer.query.sessionsMax` limit their number.',
    'Responses are compressed with zstd, lz4 or gzip, in this order, as `Accept-Encoding` allows, if `enable_http_compression=1` is given; with `compress=1` they consist of compressed blocks of ClickHouse (LZ4). With `decompress=1` the body of the request consists of such blocks.',
    'For tools that cannot set headers the operator can set `indexer.tokenInPassword`: then a password of the form `TOKEN:PASSWORD` carries both, on TLS and loopback connections.',
    `Formats of the embedded engine: ${FORMAT_NAMES.map((name) => `\`${name}\``).join(', ')}. The formats by columns (\`JSONColumns\` and its variants) hold the whole result, at most 16 MiB. 64-bit numbers are quoted in JSON.`,
    'Every response has `X-ClickHouse-Query-Id`, `X-ClickHouse-Format`, `X-ClickHouse-Timezone`, `X-ClickHouse-Server-Display-Name`, `X-ClickHouse-Summary` with rows, bytes and time of the result (with `send_progress_in_http_headers=1` also as `X-ClickHouse-Progress`; on the embedded engine `read_rows` is the rows of the result too, and `read_bytes` is 0: it does not count what it reads), and `X-Sluice-Coverage-Slot`: everything up to that slot was in the tables. When a client disconnects, its query is cancelled. A result of more than 4 MiB is sent while its query runs: the figures of its Summary are 0, and an error after its first rows follows in the body, between `__exception__` lines with the value of `X-ClickHouse-Exception-Tag`, after which the connection is closed before the end of the body. With `wait_end_of_query=1`, and always where the database is a ClickHouse server before 25.11, the result is complete before its first byte. Errors are text, `Code: N. DB::Exception: … (NAME)`, with the number in `X-ClickHouse-Exception-Code`:',
    table(
      ['code', 'name', 'HTTP', 'when'],
      Object.entries(MEANINGS).map(([name, meaning]) => {
        const [code, http] = QUERY_ERRORS[name as keyof typeof QUERY_ERRORS]
        return [code, `\`${name}\``, http, meaning]
      }),
    ),
  ]
}
