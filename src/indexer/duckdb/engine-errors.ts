import { StreamFailed } from '../../platform/db/duckdb-stream.ts'
import { QueryError, unknownTable } from '../query/error.ts'

/** Patterns of the engine's errors. The engine's text may name anything in its catalogue, so messages repeat only what the customer wrote. */
const ENGINE_ERRORS: readonly (readonly [RegExp, (found: RegExpExecArray) => QueryError])[] = [
  // Written by the dialect into the statement: a value that ClickHouse refuses, too, or a limit with its name.
  [
    /^Invalid Input Error: sluice (ILLEGAL_DIVISION|CANNOT_CONVERT_TYPE|SIZES_OF_ARRAYS_DONT_MATCH): ([\x20-\x7e]{1,200})/,
    ([, type, message]) =>
      new QueryError(type as 'ILLEGAL_DIVISION' | 'CANNOT_CONVERT_TYPE' | 'SIZES_OF_ARRAYS_DONT_MATCH', `${message}.`),
  ],
  [
    /^Invalid Input Error: sluice: ([\x20-\x7e]{1,200})/,
    ([, message]) => new QueryError('BAD_ARGUMENTS', `${message}.`),
  ],
  [/^INTERRUPT/, () => new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.')],
  [
    /^Out of Memory/,
    () => new QueryError('MEMORY_LIMIT_EXCEEDED', 'Memory limit exceeded. Read less at a time, or aggregate first.'),
  ],
  [
    /Referenced column "([\w$]{1,64})" not found/,
    ([, name]) => new QueryError('UNKNOWN_IDENTIFIER', `Unknown expression identifier ${name}.`),
  ],
  [
    /Referenced table "([\w$]{1,64})" not found/,
    ([, name]) => new QueryError('UNKNOWN_IDENTIFIER', `Unknown table or alias ${name}.`),
  ],
  [/Table with name ([\w$]{1,64}) does not exist/, ([, name = '']) => unknownTable(name)],
  [
    /(?:Scalar |Aggregate |Table )?Function with name ([\w$]{1,64}) does not exist/i,
    ([, name]) => new QueryError('UNKNOWN_FUNCTION', `Unknown function ${name}.`),
  ],
  [
    /No function matches the given name and argument types '([\w$]{1,64})/,
    ([, name]) => new QueryError('BAD_ARGUMENTS', `Function ${name} does not take these arguments.`),
  ],
  [
    /^Values were not provided for the following prepared statement parameters: ([\w, $]{1,200})/m,
    ([, names]) =>
      new QueryError('UNKNOWN_QUERY_PARAMETER', `Substitution ${names} is not set: give it as param_${names}.`),
  ],
  [
    /^(?:Conversion|Invalid Input) Error: (?:invalid timestamp|timestamp field|Could not parse string .* according to format)/is,
    () =>
      new QueryError(
        'CANNOT_PARSE_DATETIME',
        'Cannot parse a text as DateTime; parseDateTimeBestEffort reads other forms, toDateTimeOrNull returns NULL.',
      ),
  ],
  [
    /^Conversion Error: (?:invalid date|date field)/i,
    () => new QueryError('CANNOT_PARSE_DATE', 'Cannot parse a text as Date; toDateOrNull returns NULL instead.'),
  ],
  [
    /^Conversion Error: Could not convert string/,
    () =>
      new QueryError(
        'CANNOT_PARSE_TEXT',
        'Cannot parse a text as a number; functions with the endings OrZero and OrNull return 0 or NULL instead.',
      ),
  ],
  [
    /^Conversion Error/,
    () => new QueryError('TYPE_MISMATCH', 'A value cannot be converted to the type it is used as.'),
  ],
  [
    /^Out of Range/,
    () => new QueryError('VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE', 'A value is out of the range of its type.'),
  ],
  [
    /regular expression|regexp|^Invalid Input Error: (?:missing [)\]]|missing argument to rep|no argument for rep|bad repetition|invalid (?:escape sequence|character class|perl operator|named capture|UTF-8)|unexpected \)|trailing \\|pattern too large)/i,
    () => new QueryError('CANNOT_COMPILE_REGEXP', 'The regular expression cannot be read.'),
  ],
  [
    /must appear in the GROUP BY/,
    () => new QueryError('BAD_ARGUMENTS', 'A column is neither under an aggregate function nor in GROUP BY.'),
  ],
  [
    /More than one row returned by a subquery/,
    () => new QueryError('BAD_ARGUMENTS', 'Scalar subquery returned more than one row.'),
  ],
  [
    /Invalid input for hex digit/,
    () => new QueryError('BAD_ARGUMENTS', 'A text is not hexadecimal: it has another character than 0-9 and a-f.'),
  ],
  [
    /Like pattern must not end with escape/i,
    () => new QueryError('BAD_ARGUMENTS', 'Invalid escape sequence at the end of a LIKE pattern.'),
  ],
  [/^Parser Error/, () => new QueryError('SYNTAX_ERROR', 'Syntax error.')],
  [
    /^Binder Error/,
    () => new QueryError('BAD_ARGUMENTS', 'The statement does not fit the tables: check names, types and GROUP BY.'),
  ],
]

/** The error that a customer gets for an error of the engine. */
export function translateEngineError(cause: unknown): QueryError {
  if (cause instanceof StreamFailed)
    return new QueryError(
      'UNKNOWN_EXCEPTION',
      'The query failed after its first rows: a value cannot be computed or converted, or the memory limit is exceeded.',
    )
  const text = cause instanceof Error ? cause.message : String(cause)
  for (const [pattern, make] of ENGINE_ERRORS) {
    const found = pattern.exec(text)
    if (found !== null) return make(found)
  }
  return new QueryError('UNKNOWN_EXCEPTION', 'The query could not be run.')
}
