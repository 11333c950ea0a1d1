import { arrayOf, STRING, UINT16, UINT32 } from '../types.ts'
import { condition, constantNumber, constantText, numberSql, quoteText, type Value, value } from '../value.ts'
import { type CallArguments, define, defineAll, type FunctionDefinition, stringValue } from './definition.ts'
import { textArg } from './text/arguments.ts'

/** Parts of URLs, and IPv4 addresses as texts and numbers. The patterns do not validate a URL, as those of ClickHouse do not. */

const SCHEME = '^(?:[A-Za-z][A-Za-z0-9+.-]*:)?//'
const AUTHORITY = `${SCHEME}(?:[^@/?#]*@)?`

/** A host has at least one point in it. The scheme may be missing. */
const HOST_START = '^(?:(?:[A-Za-z][A-Za-z0-9+.-]*:)?//)?(?:[^@/:?#]*@)?'
const HOST_END = '(?:[:/?#]|$)'
const NO_LABEL = '.:/?#@\\s<>%{}|\\\\^~\\[\\];=&'
const LABEL = `[^${NO_LABEL}]`

const found = (name: string, pattern: string): FunctionDefinition =>
  define(name, 1, (input) => stringValue(`regexp_extract(${textArg(input, 0)}, '${pattern}', 1)`))
const without = (name: string, pattern: string, replacement = ''): FunctionDefinition =>
  define(name, 1, (input) => stringValue(`regexp_replace(${textArg(input, 0)}, '${pattern}', '${replacement}')`))

/** The text of a parameter's name inside of a pattern. */
function parameterName(input: CallArguments): string {
  const name = constantText(input.arg(1))
  if (name === undefined || !/^[\w.~-]{1,100}$/.test(name))
    throw input.fail('takes a constant name of letters, digits and _ . ~ - as its second argument')
  return name.replaceAll('.', '\\.')
}

const QUERY = "regexp_extract(%, '\\?([^#]*)', 1)"
const parameters = (input: CallArguments): string =>
  `list_filter(string_split(${QUERY.replace('%', textArg(input, 0))}, '&'), lambda p_: p_ <> '')`

const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
const IPV4 = `${OCTET}(?:\\.${OCTET}){3}`

function addressNumber(input: CallArguments, otherwise: string): Value {
  const given = textArg(input, 0)
  const parts = `string_split(${given}, '.')`
  const sum = [0, 1, 2, 3].map((at) => `CAST(list_extract(${parts}, ${at + 1}) AS UINTEGER) * ${256 ** (3 - at)}`)
  return value(
    `CAST(CASE WHEN regexp_full_match(${given}, '${IPV4}') THEN ${sum.join(' + ')} ELSE ${otherwise} END AS UINTEGER)`,
    UINT32,
  )
}

export const URL_FUNCTIONS: readonly FunctionDefinition[] = [
  found('domain', `${HOST_START}(${LABEL}+(?:\\.${LABEL}+)+)${HOST_END}`),
  define('domainWithoutWWW', 1, (input) => {
    const domain = `regexp_extract(${textArg(input, 0)}, '${HOST_START}(${LABEL}+(?:\\.${LABEL}+)+)${HOST_END}', 1)`
    return stringValue(`regexp_replace(${domain}, '^www\\.', '')`)
  }),
  found('topLevelDomain', `${HOST_START}(?:${LABEL}+\\.)+([^0-9${NO_LABEL}]${LABEL}*)${HOST_END}`),
  found('protocol', '^([A-Za-z][A-Za-z0-9+.-]*):'),
  found('netloc', `${SCHEME}([^/?#]*)`),
  found('path', `${SCHEME}[^/?#]*(/[^?#]*)`),
  found('pathFull', `${SCHEME}[^/?#]*(/.*)`),
  found('queryString', '\\?([^#]*)'),
  found('fragment', '#(.*)'),
  found('queryStringAndFragment', '[?#](.*)'),
  without('cutWWW', '^((?:[A-Za-z][A-Za-z0-9+.-]*:)?//)www\\.', '\\1'),
  without('cutQueryString', '\\?[^#]*'),
  without('cutFragment', '#.*'),
  without('cutQueryStringAndFragment', '[?#].*'),
  define('port', [1, 2], (input) => {
    const fallback = input.args.length > 1 ? constantNumber(input.arg(1)) : 0
    return value(
      `coalesce(TRY_CAST(regexp_extract(${textArg(input, 0)}, '${AUTHORITY}[^:/?#]*:(\\d+)', 1) AS USMALLINT), CAST(${fallback ?? 0} AS USMALLINT))`,
      UINT16,
    )
  }),
  define('extractURLParameter', 2, (input) =>
    stringValue(`regexp_extract(${textArg(input, 0)}, ${quoteText(`[?&]${parameterName(input)}=([^&#]*)`)}, 1)`),
  ),
  define('extractURLParameters', 1, (input) => value(parameters(input), arrayOf(STRING))),
  define('extractURLParameterNames', 1, (input) =>
    value(`list_transform(${parameters(input)}, lambda p_: regexp_replace(p_, '=.*', ''))`, arrayOf(STRING)),
  ),
  ...defineAll('IPv4NumToString', 1, (input) => {
    const number = `CAST(${numberSql(input.arg(0))} AS BIGINT)`
    const parts = [16_777_216, 65_536, 256, 1].map((unit) => `CAST(${number} // ${unit} % 256 AS VARCHAR)`)
    return stringValue(`concat_ws('.', ${parts.join(', ')})`)
  }),
  define('IPv4StringToNum', 1, (input) => addressNumber(input, "error('sluice: Invalid IPv4 value')")),
  define('IPv4StringToNumOrDefault', 1, (input) => addressNumber(input, '0')),
  define('IPv4StringToNumOrNull', 1, (input) => {
    const made = addressNumber(input, 'NULL')
    return { ...made, type: { ...made.type, isNullable: true } }
  }),
  define('isIPv4String', 1, (input) => condition(`regexp_full_match(${textArg(input, 0)}, '${IPV4}')`)),
]
