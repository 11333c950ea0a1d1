import { pino } from 'pino'
import { plainFields, plainText } from './log-record.ts'
import { createLogSink } from './log-sink.ts'

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

type LogMethod = (fields: object | string, message?: string) => void

/** One JSON record a line. The message is a constant, values are fields, an error goes under `err`. */
export type Logger = {
  trace: LogMethod
  debug: LogMethod
  info: LogMethod
  warn: LogMethod
  error: LogMethod
  fatal: LogMethod
  /** A logger that adds these fields to each record and follows the level of its parent. */
  child(fields: object): Logger
  /** The least level that is written; may be set while running. */
  level: string
}

export type LoggerOptions = {
  level: string
  destination?: NodeJS.WritableStream | { write(line: string): unknown } | undefined
}

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const satisfies LogLevel[]

/**
 * Every field and message is masked before the library sees it (`log-record.ts`), so neither a child's fields, an
 * error's text nor a foreign header can bring a secret into the log.
 */
export function createLogger(options: LoggerOptions): Logger {
  const root = pino(
    {
      level: 'trace',
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // Records are plain data already; the library's error serializer would process them again.
      serializers: { err: (value: unknown) => value },
    },
    options.destination ?? createLogSink({ fd: 1 }),
  )
  return wrap(root, { level: options.level, rank: rankOf(options.level) })
}

/** Writes nothing. */
export const silentLogger: Logger = {
  trace() {},
  debug() {},
  info() {},
  warn() {},
  error() {},
  fatal() {},
  child: () => silentLogger,
  level: 'silent',
}

type Threshold = { level: string; rank: number }

function wrap(target: pino.Logger, threshold: Threshold): Logger {
  const method = (level: Exclude<LogLevel, 'silent'>): LogMethod => {
    const rank = rankOf(level)
    return (fields, message) => {
      if (rank < threshold.rank) return
      if (typeof fields === 'string') target[level](plainText(fields))
      else if (message === undefined) target[level](plainFields(fields))
      else target[level](plainFields(fields), plainText(message))
    }
  }
  return {
    trace: method('trace'),
    debug: method('debug'),
    info: method('info'),
    warn: method('warn'),
    error: method('error'),
    fatal: method('fatal'),
    child: (fields) => wrap(target.child(plainFields(fields)), threshold),
    get level() {
      return threshold.level
    },
    set level(level: string) {
      threshold.rank = rankOf(level)
      threshold.level = level
    },
  }
}

/** An unknown level counts as `info`: a misspelt level must not silence a service. */
function rankOf(level: string): number {
  const rank = LOG_LEVELS.indexOf(level as LogLevel)
  return rank === -1 ? LOG_LEVELS.indexOf('info') : rank
}
