import { arrayOf, STRING, type Type, UINT64 } from '../../types.ts'
import { condition, constantNumber, constantText, type Value, value } from '../../value.ts'
import {
  bound,
  type CallArguments,
  define,
  defineAll,
  type FunctionDefinition,
  stringValue,
  uint64Value,
} from '../definition.ts'
import { pattern, textArg } from './arguments.ts'
import { bytePosition } from './position.ts'

/** Functions that find several things in a text: matches, groups, words and parts. */

const texts = (sql: string): Value => value(sql, arrayOf(STRING))
const FLAGS = "'s'"

/** Number of groups in a constant regular expression. */
function groupCount(input: CallArguments): number {
  const expression = constantText(input.arg(1)) ?? ''
  let count = 0
  let isInClass = false
  for (let at = 0; at < expression.length; at++) {
    const letter = expression[at]
    if (letter === '\\') at++
    else if (letter === '[') isInClass = true
    else if (letter === ']') isInClass = false
    else if (letter === '(' && !isInClass && isCounted(expression.slice(at + 1, at + 4))) count++
  }
  if (count === 0) throw input.fail('takes a regular expression with groups in parentheses')
  return count
}

/** Whether the group that begins here is counted: a plain one, or one with a name. */
function isCounted(next: string): boolean {
  return !next.startsWith('?') || next.startsWith('?P<') || /^\?<[^=!]/.test(next)
}

/** One list of matches for each group. */
function groups(input: CallArguments): readonly string[] {
  const [of, expression] = [textArg(input, 0), pattern(input, 1)]
  return Array.from(
    { length: groupCount(input) },
    (_, at) => `regexp_extract_all(${of}, ${expression}, ${at + 1}, ${FLAGS})`,
  )
}

/** The words to look for: an array of texts. */
function needles(input: CallArguments): string {
  const given = input.arg(1)
  if (given.type.kind !== 'array' || (given.type.of.kind !== 'string' && given.type.of.kind !== 'nothing'))
    throw input.wrongType('takes an array of texts as its second argument')
  return given.sql
}

const positions = (input: CallArguments, isFolded: boolean): string => {
  const [of, word] = isFolded ? [`lower(${textArg(input, 0)})`, 'lower(w_)'] : [textArg(input, 0), 'w_']
  return `list_transform(${needles(input)}, lambda w_: CAST(${bytePosition(of, word)} AS UBIGINT))`
}

const UINT64S: Type = arrayOf(UINT64)

export const TEXT_SEARCH_FUNCTIONS: readonly FunctionDefinition[] = [
  define('countMatches', 2, (input) =>
    uint64Value(`len(regexp_extract_all(${textArg(input, 0)}, ${pattern(input, 1)}, 0, ${FLAGS}))`),
  ),
  define('countMatchesCaseInsensitive', 2, (input) =>
    uint64Value(`len(regexp_extract_all(${textArg(input, 0)}, ${pattern(input, 1)}, 0, 'si'))`),
  ),
  define('countSubstringsCaseInsensitive', 2, (input) => {
    const [of, part] = [`lower(${textArg(input, 0)})`, `lower(${textArg(input, 1)})`]
    return uint64Value(`(strlen(${of}) - strlen(replace(${of}, ${part}, ''))) // greatest(strlen(${part}), 1)`)
  }),
  define('extractGroups', 2, (input) =>
    texts(
      `[${groups(input)
        .map((each) => `coalesce(list_extract(${each}, 1), '')`)
        .join(', ')}]`,
    ),
  ),
  ...defineAll('extractAllGroupsVertical extractAllGroups', 2, (input) => {
    const lists = groups(input)
    const row = lists.map((each) => `list_extract(${each}, i_)`)
    return value(
      `list_transform(range(1, len(${lists[0]}) + 1), lambda i_: [${row.join(', ')}])`,
      arrayOf(arrayOf(STRING)),
    )
  }),
  define('extractAllGroupsHorizontal', 2, (input) => value(`[${groups(input).join(', ')}]`, arrayOf(arrayOf(STRING)))),
  define('multiSearchFirstIndex', 2, (input) =>
    uint64Value(`coalesce(list_position(list_transform(${positions(input, false)}, lambda p_: p_ > 0), true), 0)`),
  ),
  define('multiSearchFirstPosition', 2, (input) =>
    uint64Value(`coalesce(list_min(list_filter(${positions(input, false)}, lambda p_: p_ > 0)), 0)`),
  ),
  define('multiSearchAllPositions', 2, (input) => value(positions(input, false), UINT64S)),
  define('multiSearchAnyCaseInsensitive', 2, (input) =>
    condition(`(len(list_filter(${positions(input, true)}, lambda p_: p_ > 0)) > 0)`),
  ),
  define('hasTokenCaseInsensitive', 2, (input) =>
    condition(
      `list_contains(regexp_extract_all(lower(${textArg(input, 0)}), '[a-z0-9]+'), lower(${textArg(input, 1)}))`,
    ),
  ),
  define('splitByNonAlpha', 1, (input) =>
    texts(`list_filter(string_split_regex(${textArg(input, 0)}, '[\\s[:punct:]]+'), lambda w_: w_ <> '')`),
  ),
  define('tokens', 1, (input) => texts(`regexp_extract_all(${textArg(input, 0)}, '[A-Za-z0-9\\x{80}-\\x{10ffff}]+')`)),
  define('ngrams', 2, (input) => {
    const size = constantNumber(input.arg(1))
    if (size === undefined || size < 1 || !Number.isInteger(size)) throw input.fail('takes a constant size above 0')
    const of = textArg(input, 0)
    return texts(`list_transform(range(1, length(${of}) - ${size} + 2), lambda i_: substring(${of}, i_, ${size}))`)
  }),
  define('firstLine', 1, (input) => stringValue(`regexp_extract(${textArg(input, 0)}, '^[^\\r\\n]*')`)),
  define('appendTrailingCharIfAbsent', 2, (input) =>
    stringValue(
      bound(
        input,
        textArg(input, 0),
        (of) =>
          `CASE WHEN ${of} = '' OR ends_with(${of}, ${textArg(input, 1)}) THEN ${of} ELSE ${of} || ${textArg(input, 1)} END`,
      ),
    ),
  ),
  ...defineAll('damerauLevenshteinDistance', 2, (input) =>
    uint64Value(`damerau_levenshtein(${textArg(input, 0)}, ${textArg(input, 1)})`),
  ),
  define('byteHammingDistance', 2, (input) => uint64Value(`hamming(${textArg(input, 0)}, ${textArg(input, 1)})`)),
]
