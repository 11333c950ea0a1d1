import { foldName } from '../../../query/sql-tokens.ts'
import { arrayOf, asInt, int, STRING } from '../../types.ts'
import {
  bytesSql,
  condition,
  constantNumber,
  constantText,
  isAnyNullable,
  numberSql,
  plainSql,
  quoteText,
  toText,
  type Value,
  value,
} from '../../value.ts'
import {
  bound,
  type CallArguments,
  define,
  defineAll,
  type FunctionDefinition,
  stringValue,
  uint64Value,
} from '../definition.ts'
import { bytes, pattern, textArg } from './arguments.ts'
import { numberDigits } from './codes.ts'
import { POSITION_FUNCTIONS } from './position.ts'

const whole = (input: CallArguments, at: number): string => `CAST(${numberSql(input.arg(at))} AS BIGINT)`

function length(input: CallArguments): Value {
  const given = input.arg(0)
  if (given.isBytes === true) return uint64Value(`octet_length(${given.sql})`)
  if (given.type.kind === 'map') return uint64Value(`cardinality(${given.sql})`)
  if (given.type.kind === 'array' || given.type.kind === 'unknown') return uint64Value(`len(${given.sql})`)
  return uint64Value(`strlen(${textArg(input, 0)})`)
}

function isEmpty(input: CallArguments, operator: '=' | '<>'): Value {
  return condition(`(${length(input).sql} ${operator} 0)`)
}

function substring(input: CallArguments): Value {
  const isBytes = input.arg(0).isBytes === true
  const given = {
    of: isBytes ? input.arg(0).sql : textArg(input, 0),
    from: whole(input, 1),
    count: input.args.length < 3 ? undefined : whole(input, 2),
  }
  const write = isBytes ? bytesPart : textPart
  const sql = isPlain(input) ? write(given) : boundPlace(input, given, (place) => write(substringPlace(input, place)))
  return isBytes ? bytes(sql) : stringValue(sql)
}

/** Longer expressions, such as calls inside each other, are computed once where they would stand several times. */
const REPEATED_LENGTH_MAX = 40

/** Text, position and length stand several times in the result. */
function boundPlace(input: CallArguments, given: Place, body: (place: Place) => string): string {
  const varying = (['of', 'from', 'count'] as const).filter(
    (key, at) => input.args[at]?.isConstant !== true && (given[key] ?? '').length > REPEATED_LENGTH_MAX,
  )
  if (varying.length === 0) return body(given)
  const packed = `struct_pack(${varying.map((key) => `"${key}" := ${given[key]}`).join(', ')})`
  return bound(input, packed, (name) =>
    body({ ...given, ...Object.fromEntries(varying.map((key) => [key, `${name}."${key}"`])) }),
  )
}

/** Whether the engine reads position and length as ClickHouse does: a constant position, and a length that is not negative. */
function isPlain(input: CallArguments): boolean {
  const [from, count] = [constantNumber(input.arg(1)), constantNumber(input.args[2])]
  if (from === undefined || from === 0 || (from < 0 && foldName(input.name) === 'substringutf8')) return false
  if (input.args.length < 3) return true
  return count === undefined ? asInt(input.arg(2).type)?.isSigned === false : count >= 0
}

type Place = { readonly of: string; readonly from: string; readonly count: string | undefined }

const textPart = ({ of, from, count }: Place): string =>
  `substring(${of}, ${from}${count === undefined ? '' : `, ${count}`})`

/** The engine has no substring of bytes: two hexadecimal digits stand for each. */
function bytesPart({ of, from, count }: Place): string {
  const first = `(CASE WHEN ${from} > 0 THEN ${from} * 2 - 1 ELSE ${from} * 2 END)`
  return `unhex(${textPart({ of: `hex(${of})`, from: first, count: count === undefined ? undefined : `(${count}) * 2` })})`
}

function cut(input: CallArguments, name: 'left' | 'right'): Value {
  const given = input.arg(0)
  if (given.isBytes === true) return bytes(`unhex(${name}(hex(${given.sql}), (${whole(input, 1)}) * 2))`)
  return stringValue(`${name}(${textArg(input, 0)}, ${whole(input, 1)})`)
}

/** Position and length for the engine, which reads 0 and negative lengths in another way. */
function substringPlace(input: CallArguments, { of, from: first, count: length }: Place): Place {
  const [from, count] = [constantNumber(input.arg(1)), constantNumber(input.args[2])]
  const characters = `CAST(${input.arg(0).isBytes === true ? 'octet_length' : 'length'}(${of}) AS BIGINT)`
  // A length in characters is counted from the first character, a length in bytes from a place before it.
  const isClamped = foldName(input.name) === 'substringutf8' && (from === undefined || from < 0)
  const start = isClamped ? `(CASE WHEN ${first} < 0 THEN greatest(${first}, -${characters}) ELSE ${first} END)` : first
  const mayBeZero = from === undefined || from === 0
  if (length === undefined)
    return { of, from: start, count: mayBeZero ? nothingAtZero(first, `${characters} + abs(${first})`) : undefined }
  const isSigned = asInt(input.arg(2).type)?.isSigned !== false
  const counted = count === undefined ? isSigned : count < 0
  // A negative length ends so many characters before the end, from which a negative position counts, too.
  const ending = `greatest(0, ${length} - ${first} + (CASE WHEN ${first} > 0 THEN ${characters} + 1 ELSE 0 END))`
  const own = counted ? `(CASE WHEN ${length} < 0 THEN ${ending} ELSE ${length} END)` : length
  return { of, from: start, count: mayBeZero ? nothingAtZero(first, own) : own }
}

const nothingAtZero = (from: string, count: string): string => `(CASE WHEN ${from} = 0 THEN 0 ELSE ${count} END)`

function concat(input: CallArguments): Value {
  if (input.args.some(({ isBytes }) => isBytes === true)) return bytes(`(${input.args.map(bytesSql).join(' || ')})`)
  if (input.args.every(({ type }) => type.kind === 'array') && input.args.length > 0) {
    const [first] = input.args
    return value(`list_concat(${input.args.map(plainSql).join(', ')})`, (first as Value).type)
  }
  return stringValue(`(${input.args.map((each) => toText(each)).join(' || ')})`)
}

/** `format('{} of {}', a, b)`. */
function format(input: CallArguments): Value {
  const given = constantText(input.arg(0))
  if (given === undefined) throw input.fail('takes a constant pattern')
  let next = 1
  const parts = given.split(/(\{\d*\}|\{\{|\}\})/).filter((part) => part !== '')
  const sql = parts.map((part) => {
    if (part === '{{' || part === '}}') return quoteText(part[0] as string)
    if (!/^\{\d*\}$/.test(part)) return quoteText(part)
    const at = part === '{}' ? next++ : Number(part.slice(1, -1)) + 1
    return toText(input.arg(at))
  })
  return stringValue(`concat(${sql.length === 0 ? "''" : sql.join(', ')})`)
}

/** Widest result of the functions that pad. */
const PAD_MAX = 1000

function pad(name: 'lpad' | 'rpad', input: CallArguments): Value {
  const width = constantNumber(input.arg(1))
  if (width === undefined || width < 0 || width > PAD_MAX)
    throw input.fail(`takes a constant length up to ${PAD_MAX} (pad_length)`)
  const fill = input.args.length > 2 ? textArg(input, 2) : "' '"
  return stringValue(`${name}(${textArg(input, 0)}, ${width}, ${fill})`)
}

function split(input: CallArguments, of: number, by: string): Value {
  const limit = input.args.length > 2 ? constantNumber(input.arg(2)) : undefined
  const all = `string_split(${textArg(input, of)}, ${by})`
  return value(limit === undefined || limit === 0 ? all : `list_slice(${all}, 1, ${limit})`, arrayOf(STRING))
}

/** A text of bytes, of each number the lowest one. */
function char(input: CallArguments): Value {
  const numbers = input.args.map(constantNumber)
  if (numbers.every((each) => each !== undefined && Number.isInteger(each) && each >= 0 && each < 128))
    return stringValue(`concat(${numbers.map((each) => `chr(${each})`).join(', ')})`)
  const digits = input.args.map((given) => `printf('%02x', CAST(trunc(${numberSql(given)}) AS BIGINT) & 255)`)
  return bytes(`unhex(concat(${digits.join(', ')}))`)
}

/** A hexadecimal number without leading zeros but with complete bytes, or the bytes of a text. */
function hex(input: CallArguments): Value {
  const given = input.arg(0)
  const digits = numberDigits(given)
  if (digits !== undefined)
    return stringValue(`(CASE WHEN strlen(${digits}) % 2 = 1 THEN '0' ELSE '' END || ${digits})`)
  return stringValue(`hex(${given.isBytes === true ? given.sql : textArg(input, 0)})`)
}

/** `%` and `_` of LIKE; a backslash escapes them. Before another character of a constant pattern it is a backslash. */
const like =
  (operator: string) =>
  (input: CallArguments): Value => {
    const given = constantText(input.arg(1))
    const escaped = given?.replaceAll(/\\([^])/g, (all, next: string) => ('%_\\'.includes(next) ? all : `\\${all}`))
    const sql = escaped === undefined || escaped === given ? textArg(input, 1) : quoteText(escaped)
    return condition(`(${textArg(input, 0)} ${operator} ${sql} ESCAPE '\\')`)
  }

/** Whether a text begins or ends with another one; bytes are compared by their hexadecimal digits, two for each. */
function edge(input: CallArguments, name: 'starts_with' | 'ends_with'): Value {
  const isBytes = input.args.some((each) => each.isBytes === true)
  const [of, part] = isBytes
    ? input.args.map((each) => `hex(${bytesSql(each)})`)
    : input.args.map((_, at) => textArg(input, at))
  return condition(`${name}(${of}, ${part})`)
}

function trimmed(name: 'trim' | 'ltrim' | 'rtrim') {
  return (input: CallArguments): Value =>
    stringValue(`${name}(${textArg(input, 0)}${input.args.length > 1 ? `, ${textArg(input, 1)}` : ", ' '"})`)
}

/** Regular expressions match anywhere in the text, `.` matches a line end. */
const flags = "'s'"

/** Without the ending UTF8 only these letters change. */
const CAPITALS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const inCapitals = (sql: string): string => `translate(${sql}, '${CAPITALS.toLowerCase()}', '${CAPITALS}')`
const inSmallLetters = (sql: string): string => `translate(${sql}, '${CAPITALS}', '${CAPITALS.toLowerCase()}')`

/** NULL makes the result NULL: the function of the engine leaves such a part out. */
function joined(input: CallArguments): Value {
  const parts = input.args.slice(1)
  const text = `concat_ws(${textArg(input, 0)}, ${parts.map(toText).join(', ')})`
  const nulls = parts.filter((part) => isAnyNullable([part])).map((part) => `${plainSql(part)} IS NULL`)
  return stringValue(nulls.length === 0 ? text : `(CASE WHEN ${nulls.join(' OR ')} THEN NULL ELSE ${text} END)`)
}

export const TEXT_FUNCTIONS: readonly FunctionDefinition[] = [
  ...defineAll('length octet_length', 1, length),
  ...defineAll('lengthUTF8 char_length character_length', 1, (input) => uint64Value(`length(${textArg(input, 0)})`)),
  define('empty', 1, (input) => isEmpty(input, '=')),
  define('notEmpty', 1, (input) => isEmpty(input, '<>')),
  define('lowerUTF8', 1, (input) => stringValue(`lower(${textArg(input, 0)})`)),
  ...defineAll('lower lcase', 1, (input) => stringValue(inSmallLetters(textArg(input, 0)))),
  define('upperUTF8', 1, (input) => stringValue(`upper(${textArg(input, 0)})`)),
  ...defineAll('upper ucase', 1, (input) => stringValue(inCapitals(textArg(input, 0)))),
  define('initcap', 1, (input) => {
    const words = `regexp_extract_all(${textArg(input, 0)}, '[A-Za-z0-9]+|[^A-Za-z0-9]+')`
    const word = `${inCapitals('left(w_, 1)')} || ${inSmallLetters('substring(w_, 2)')}`
    return stringValue(`array_to_string(list_transform(${words}, lambda w_: ${word}), '')`)
  }),
  ...defineAll('reverse reverseUTF8', 1, (input) =>
    input.arg(0).type.kind === 'array'
      ? value(`list_reverse(${input.arg(0).sql})`, input.arg(0).type)
      : stringValue(`reverse(${textArg(input, 0)})`),
  ),
  define('concat', [1, 100], concat),
  ...defineAll('concatWithSeparator concat_ws', [2, 100], (input) => joined(input)),
  ...defineAll('substring substr mid substringUTF8', [2, 3], substring),
  ...defineAll('left leftUTF8', 2, (input) => cut(input, 'left')),
  ...defineAll('right rightUTF8', 2, (input) => cut(input, 'right')),
  ...defineAll('trim trimBoth', [1, 2], trimmed('trim')),
  ...defineAll('trimLeft ltrim', [1, 2], trimmed('ltrim')),
  ...defineAll('trimRight rtrim', [1, 2], trimmed('rtrim')),
  ...defineAll('startsWith startsWithUTF8', 2, (input) => edge(input, 'starts_with')),
  ...defineAll('endsWith endsWithUTF8', 2, (input) => edge(input, 'ends_with')),
  ...POSITION_FUNCTIONS,
  define('countSubstrings', 2, (input) =>
    uint64Value(
      `(strlen(${textArg(input, 0)}) - strlen(replace(${textArg(input, 0)}, ${textArg(input, 1)}, ''))) // greatest(strlen(${textArg(input, 1)}), 1)`,
    ),
  ),
  define('like', 2, like('LIKE')),
  define('notLike', 2, like('NOT LIKE')),
  define('ilike', 2, like('ILIKE')),
  define('notILike', 2, like('NOT ILIKE')),
  define('match', 2, (input) => condition(`regexp_matches(${textArg(input, 0)}, ${pattern(input, 1)}, ${flags})`)),
  define('extract', 2, (input) => {
    const hasGroup = /\((?!\?)/.test(constantText(input.arg(1))?.replaceAll(/\\./gs, '') ?? '')
    return stringValue(`regexp_extract(${textArg(input, 0)}, ${pattern(input, 1)}, ${hasGroup ? 1 : 0}, ${flags})`)
  }),
  define('extractAll', 2, (input) => {
    const hasGroup = /\((?!\?)/.test(constantText(input.arg(1))?.replaceAll(/\\./gs, '') ?? '')
    return value(
      `regexp_extract_all(${textArg(input, 0)}, ${pattern(input, 1)}, ${hasGroup ? 1 : 0}, ${flags})`,
      arrayOf(STRING),
    )
  }),
  ...defineAll('regexpExtract REGEXP_SUBSTR', [2, 3], (input) =>
    stringValue(
      `regexp_extract(${textArg(input, 0)}, ${pattern(input, 1)}, ${constantNumber(input.args[2]) ?? 1}, ${flags})`,
    ),
  ),
  ...defineAll('replaceAll replace', 3, (input) =>
    stringValue(`replace(${textArg(input, 0)}, ${textArg(input, 1)}, ${textArg(input, 2)})`),
  ),
  define('replaceOne', 3, (input) => {
    const [of, from] = [textArg(input, 0), textArg(input, 1)]
    return stringValue(
      `(CASE WHEN strpos(${of}, ${from}) = 0 OR ${from} = '' THEN ${of} ELSE left(${of}, strpos(${of}, ${from}) - 1) || ${textArg(input, 2)} || substring(${of}, strpos(${of}, ${from}) + length(${from})) END)`,
    )
  }),
  ...defineAll('replaceRegexpAll REGEXP_REPLACE', 3, (input) =>
    stringValue(`regexp_replace(${textArg(input, 0)}, ${pattern(input, 1)}, ${textArg(input, 2)}, 'gs')`),
  ),
  define('replaceRegexpOne', 3, (input) =>
    stringValue(`regexp_replace(${textArg(input, 0)}, ${pattern(input, 1)}, ${textArg(input, 2)}, 's')`),
  ),
  define('translate', 3, (input) =>
    stringValue(`translate(${textArg(input, 0)}, ${textArg(input, 1)}, ${textArg(input, 2)})`),
  ),
  define('splitByChar', [2, 3], (input) => split(input, 1, textArg(input, 0))),
  define('splitByString', [2, 3], (input) => split(input, 1, textArg(input, 0))),
  define('splitByRegexp', 2, (input) =>
    value(`string_split_regex(${textArg(input, 1)}, ${pattern(input, 0)})`, arrayOf(STRING)),
  ),
  define('splitByWhitespace', 1, (input) =>
    value(`list_filter(string_split_regex(${textArg(input, 0)}, '\\s+'), lambda w_: w_ <> '')`, arrayOf(STRING)),
  ),
  define('alphaTokens', 1, (input) => value(`regexp_extract_all(${textArg(input, 0)}, '[A-Za-z]+')`, arrayOf(STRING))),
  define('substringIndex', 3, (input) => {
    const count = constantNumber(input.arg(2))
    if (count === undefined) throw input.fail('takes a constant number of parts')
    const parts = `string_split(${textArg(input, 0)}, ${textArg(input, 1)})`
    return stringValue(
      `array_to_string(${count >= 0 ? `list_slice(${parts}, 1, ${count})` : `list_slice(${parts}, ${count}, -1)`}, ${textArg(input, 1)})`,
    )
  }),
  define('format', [1, 100], format),
  ...defineAll('leftPad lpad leftPadUTF8', [2, 3], (input) => pad('lpad', input)),
  ...defineAll('rightPad rpad rightPadUTF8', [2, 3], (input) => pad('rpad', input)),
  define('ascii', 1, (input) => {
    const digits = `left(${hex(input).sql}, 2)`
    return value(`(CASE WHEN ${digits} = '' THEN 0 ELSE CAST('0x' || ${digits} AS INTEGER) END)`, int(32, true))
  }),
  define('char', [1, 20], char),
  define('hex', 1, hex),
  define('unhex', 1, (input) => bytes(`unhex(${textArg(input, 0)})`)),
  ...defineAll('base64Encode TO_BASE64', 1, (input) => stringValue(`to_base64(${bytesSql(input.arg(0))})`)),
  ...defineAll('base64Decode FROM_BASE64', 1, (input) => bytes(`from_base64(${textArg(input, 0)})`)),
  define('base58Encode', 1, (input) => stringValue(`base58_encode(${bytesSql(input.arg(0))})`)),
  define('base58Decode', 1, (input) => bytes(`base58_decode(${textArg(input, 0)})`)),
  define('MD5', 1, (input) =>
    bytes(`unhex(md5(${input.arg(0).isBytes === true ? input.arg(0).sql : textArg(input, 0)}))`),
  ),
  define('SHA1', 1, (input) =>
    bytes(`unhex(sha1(${input.arg(0).isBytes === true ? input.arg(0).sql : textArg(input, 0)}))`),
  ),
  define('SHA256', 1, (input) =>
    bytes(`unhex(sha256(${input.arg(0).isBytes === true ? input.arg(0).sql : textArg(input, 0)}))`),
  ),
  define('hasToken', 2, (input) =>
    condition(
      `list_contains(regexp_extract_all(${textArg(input, 0)}, '[A-Za-z0-9\\x{80}-\\x{10ffff}]+'), ${textArg(input, 1)})`,
    ),
  ),
  define('multiSearchAny', 2, (input) =>
    condition(`(len(list_filter(${input.arg(1).sql}, lambda w_: contains(${textArg(input, 0)}, w_))) > 0)`),
  ),
  define('multiMatchAny', 2, (input) =>
    condition(
      `(len(list_filter(${input.arg(1).sql}, lambda w_: regexp_matches(${textArg(input, 0)}, w_, ${flags}))) > 0)`,
    ),
  ),
  define('isValidUTF8', 1, (input) => condition(`(${textArg(input, 0)} IS NOT NULL)`)),
  define('levenshteinDistance', 2, (input) => uint64Value(`levenshtein(${textArg(input, 0)}, ${textArg(input, 1)})`)),
  define('bar', [3, 4], (input) => {
    const width = input.args.length > 3 ? constantNumber(input.arg(3)) : 80
    if (width === undefined || width < 1 || width > PAD_MAX)
      throw input.fail(`takes a constant width up to ${PAD_MAX} (pad_length)`)
    const [x, low, high] = [0, 1, 2].map((at) => `CAST(${numberSql(input.arg(at))} AS DOUBLE)`)
    const eighths = `CAST(floor(greatest(0, least(1, (${x} - ${low}) / (${high} - ${low}))) * ${width} * 8) AS BIGINT)`
    return stringValue(
      `(left('${'█'.repeat(width)}', ${eighths} // 8) || substring(' ▏▎▍▌▋▊▉', ${eighths} % 8 + 1, CASE WHEN ${eighths} % 8 = 0 THEN 0 ELSE 1 END))`,
    )
  }),
  define('formatReadableSize', 1, (input) => readable(input, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'])),
  define('formatReadableDecimalSize', 1, (input) => readable(input, 1000, ['B', 'KB', 'MB', 'GB', 'TB', 'PB', 'EB'])),
  define('formatReadableQuantity', 1, (input) =>
    readable(input, 1000, ['', 'thousand', 'million', 'billion', 'trillion', 'quadrillion']),
  ),
  define(
    'toLowCardinality',
    1,
    (input) => ({ ...input.arg(0), type: { ...input.arg(0).type, isLowCardinality: true } }),
    { lowCardinality: false },
  ),
]

function readable(input: CallArguments, base: number, units: readonly string[]): Value {
  const x = `CAST(${numberSql(input.arg(0))} AS DOUBLE)`
  const cases = units.map((unit, at) => {
    const shown = `printf('%.2f', ${x} / CAST(${base ** at} AS DOUBLE))${unit === '' ? '' : ` || ' ${unit}'`}`
    return at === units.length - 1 ? `ELSE ${shown}` : `WHEN abs(${x}) < ${base ** (at + 1)} THEN ${shown}`
  })
  return stringValue(`(CASE ${cases.join(' ')} END)`)
}
