import { QueryError } from '../query/error.ts'
import { shownName } from '../query/sql-tokens.ts'
import { SETTINGS_BY_NAME, type Setting } from './setting-list.ts'

/** The settings of a query that change its result or its limits. */
export type QuerySettings = {
  /** Requested limits; those of the operator still hold. */
  readonly secondsMax: number | undefined
  readonly rowsMax: number | undefined
  readonly bytesMax: number | undefined
  /** Whether the result ends at `rowsMax` instead of being refused. */
  readonly endsAtRowsMax: boolean
  readonly quote64: boolean
  /** Whether the response may be compressed with an encoding of the client's Accept-Encoding. */
  readonly isCompressed: boolean
  /** Whether the response has the header X-ClickHouse-Progress. */
  readonly hasProgress: boolean
  readonly timezone: string
  readonly dateTimeFormat: DateTimeFormat
  /** NULL, not the default of the type, where an outer join has no row. */
  readonly joinUsesNulls: boolean
  /** Revision of the protocol in which the client reads blocks of Native; 0 is that of files. */
  readonly revision: number
}

export type DateTimeFormat = (typeof DATE_TIME_FORMATS)[number]
const DATE_TIME_FORMATS = ['simple', 'iso', 'unix_timestamp'] as const

/** Longer than every value with a meaning. */
const VALUE_LENGTH_MAX = 256

/** Throws QueryError for a setting that is not on the list: ignoring it would run another query than the client meant. */
export function readSettings(given: Iterable<readonly [name: string, value: string]>): QuerySettings {
  const values = new Map<string, string>()
  for (const [name, value] of given) values.set(name, checkedValue(name, value))
  const number = (name: string): number | undefined => Number(values.get(name) ?? 0) || undefined
  const flag = (name: string): boolean => (values.get(name) ?? SETTINGS_BY_NAME.get(name)?.value) === '1'
  return {
    secondsMax: number('max_execution_time'),
    rowsMax: number('max_result_rows'),
    bytesMax: number('max_result_bytes'),
    endsAtRowsMax: values.get('result_overflow_mode') === 'break',
    quote64: flag('output_format_json_quote_64bit_integers'),
    isCompressed: flag('enable_http_compression'),
    hasProgress: flag('send_progress_in_http_headers'),
    timezone: values.get('session_timezone') || 'UTC',
    dateTimeFormat: (values.get('date_time_output_format') ?? 'simple') as DateTimeFormat,
    joinUsesNulls: flag('join_use_nulls'),
    revision: Math.floor(number('client_protocol_version') ?? 0),
  }
}

/** The value in its usual spelling. Throws QueryError for an unknown setting and for a value that it cannot have here. */
function checkedValue(name: string, value: string): string {
  const setting = SETTINGS_BY_NAME.get(name)
  if (setting === undefined)
    throw new QueryError(
      'UNKNOWN_SETTING',
      `Unknown setting '${shownName(name).replaceAll(/\W/g, '?').slice(0, 60)}'; SHOW SETTINGS lists those that are accepted.`,
    )
  if (value.length > VALUE_LENGTH_MAX)
    throw new QueryError('BAD_ARGUMENTS', `Setting ${name} takes at most ${VALUE_LENGTH_MAX} characters.`)
  const usual = usualSpelling(setting, value)
  if (Array.isArray(setting.effect) && !setting.effect.includes(usual)) {
    if (name === 'readonly')
      throw new QueryError('READONLY', 'Setting readonly cannot be 0: only reading is supported.')
    throw new QueryError(
      'BAD_ARGUMENTS',
      `Setting ${name} can only be ${setting.effect.join(' or ')}: ${setting.help}.`,
    )
  }
  return usual
}

const CHOICES: Readonly<Record<string, readonly string[]>> = {
  result_overflow_mode: ['throw', 'break'],
  date_time_output_format: DATE_TIME_FORMATS,
}

function usualSpelling({ name, type }: Setting, value: string): string {
  const choices = CHOICES[name]
  if (choices !== undefined && !choices.includes(value))
    throw new QueryError('BAD_ARGUMENTS', `Setting ${name} is one of ${choices.join(', ')}.`)
  switch (type) {
    case 'Bool': {
      const lower = value.toLowerCase()
      if (lower === 'true') return '1'
      if (lower === 'false') return '0'
      return number(name, value) === 0 ? '0' : '1'
    }
    case 'UInt64':
    case 'Seconds':
      return String(number(name, value))
    case 'Timezone':
      if (value !== '' && !isTimezone(value))
        throw new QueryError('BAD_ARGUMENTS', `Setting ${name} takes a time zone.`)
      return value
    case 'String':
      return value
  }
}

function number(name: string, value: string): number {
  const parsed = Number(value)
  if (!Number.isFinite(parsed) || parsed < 0 || value.trim() === '')
    throw new QueryError('BAD_ARGUMENTS', `Setting ${name} takes a number.`)
  return parsed
}

/** Names of the time zone database only; offsets such as +01:00 are no time zone of ClickHouse. */
function isTimezone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$/.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
