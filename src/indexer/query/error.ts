/** ClickHouse errors that the query interface returns, by name: code and HTTP status. */
export const QUERY_ERRORS = {
  CANNOT_PARSE_TEXT: [6, 400],
  DUPLICATE_COLUMN: [15, 400],
  NUMBER_OF_COLUMNS_DOESNT_MATCH: [20, 400],
  BAD_ARGUMENTS: [36, 400],
  CANNOT_PARSE_DATE: [38, 400],
  CANNOT_PARSE_DATETIME: [41, 400],
  NUMBER_OF_ARGUMENTS_DOESNT_MATCH: [42, 400],
  ILLEGAL_TYPE_OF_ARGUMENT: [43, 400],
  ILLEGAL_COLUMN: [44, 400],
  UNKNOWN_FUNCTION: [46, 404],
  UNKNOWN_IDENTIFIER: [47, 404],
  NOT_IMPLEMENTED: [48, 501],
  UNKNOWN_TYPE: [50, 404],
  TYPE_MISMATCH: [53, 400],
  UNKNOWN_TABLE: [60, 404],
  SYNTAX_ERROR: [62, 400],
  ARGUMENT_OUT_OF_BOUND: [69, 400],
  CANNOT_CONVERT_TYPE: [70, 400],
  UNKNOWN_FORMAT: [73, 404],
  UNKNOWN_DATABASE: [81, 404],
  UNKNOWN_SETTING: [115, 404],
  INCORRECT_ELEMENT_OF_SET: [124, 400],
  ILLEGAL_DIVISION: [153, 400],
  TIMEOUT_EXCEEDED: [159, 408],
  /** ClickHouse returns 500, but a refused statement is the client's error. */
  READONLY: [164, 400],
  TOO_DEEP_AST: [167, 400],
  TOO_BIG_AST: [168, 400],
  SIZES_OF_ARRAYS_DONT_MATCH: [190, 400],
  QUOTA_EXPIRED: [201, 429],
  TOO_MANY_SIMULTANEOUS_QUERIES: [202, 429],
  AMBIGUOUS_IDENTIFIER: [207, 400],
  SOCKET_TIMEOUT: [209, 503],
  ILLEGAL_AGGREGATION: [184, 400],
  NOT_AN_AGGREGATE: [215, 400],
  QUERY_IS_TOO_LARGE: [229, 413],
  MEMORY_LIMIT_EXCEEDED: [241, 500],
  UNION_ALL_RESULT_STRUCTURES_MISMATCH: [258, 400],
  TOO_MANY_BYTES: [307, 500],
  VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE: [321, 400],
  /** ClickHouse returns 500 for these three; they are the client's to correct. */
  SESSION_NOT_FOUND: [372, 404],
  SESSION_IS_LOCKED: [373, 409],
  INVALID_SESSION_TIMEOUT: [374, 400],
  NO_COMMON_TYPE: [386, 400],
  QUERY_WAS_CANCELLED: [394, 500],
  TOO_MANY_ROWS_OR_BYTES: [396, 500],
  CANNOT_COMPILE_REGEXP: [427, 400],
  CANNOT_SCHEDULE_TASK: [439, 503],
  INVALID_LIMIT_EXPRESSION: [440, 400],
  UNKNOWN_QUERY_PARAMETER: [456, 400],
  AUTHENTICATION_FAILED: [516, 401],
  USER_SESSION_LIMIT_EXCEEDED: [700, 429],
  UNKNOWN_EXCEPTION: [1002, 500],
} as const satisfies Record<string, readonly [code: number, http: number]>

export type QueryErrorName = keyof typeof QUERY_ERRORS

/** As in `@clickhouse/client`. */
const TYPE_IN_MESSAGE = /\((?=[A-Z0-9_]*[A-Z]{3})([A-Z0-9_]+)\)/g

/** A query that was refused or failed. The message contains no name that the customer did not write, but for columns of the same statement that are alike. */
export class QueryError extends Error {
  override readonly name = 'QueryError'
  readonly type: QueryErrorName
  /** Seconds after which the same query may succeed. */
  readonly retryAfterSeconds: number | undefined
  /** Set by the database process: the statement did not pass its checks, so it was not run. */
  readonly isUnrun: boolean

  constructor(type: QueryErrorName, message: string, retryAfterSeconds?: number, { isUnrun = false } = {}) {
    super(message)
    this.type = type
    this.retryAfterSeconds = retryAfterSeconds
    this.isUnrun = isUnrun
  }

  get code(): number {
    return QUERY_ERRORS[this.type][0]
  }

  get httpStatus(): number {
    return QUERY_ERRORS[this.type][1]
  }

  /**
   * The body of the response. Clients read the text after the last `Exception: ` up to the first word in parentheses of capitals, digits and
   * underscores with three capitals in a row, so the message must contain neither.
   */
  get body(): string {
    const message = this.message.replaceAll('Exception: ', 'exception ').replaceAll(TYPE_IN_MESSAGE, '[$1]')
    return `Code: ${this.code}. DB::Exception: ${message} (${this.type})\n`
  }
}

/** `shown` is the name as the customer wrote it, shortened. */
export function unknownTable(shown: string): QueryError {
  return new QueryError('UNKNOWN_TABLE', `Table ${shown} does not exist; SHOW TABLES lists those that do.`)
}

export function notReading(): QueryError {
  const message =
    'Cannot execute query in readonly mode: only SELECT, SHOW, DESCRIBE, EXISTS, EXPLAIN, SET and USE are allowed.'
  return new QueryError('READONLY', message)
}

export function resultTooLarge(bytesMax: number): QueryError {
  return new QueryError(
    'TOO_MANY_BYTES',
    `Limit for result exceeded: more than ${bytesMax} bytes. Add LIMIT, or select fewer columns.`,
  )
}
