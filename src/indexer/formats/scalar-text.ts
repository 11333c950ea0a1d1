import type { DateTimeFormat } from '../session/settings.ts'
import { createZoneOffset } from './zone-offset.ts'

/** Text of single values in ClickHouse's memory layout. */
type Read<Value> = (at: number) => Value

const MINUS_ZERO = '-0'
const DAY_SECONDS = 86_400

export function numberAt(
  values: Buffer,
  { width, isSigned }: { readonly width: number; readonly isSigned: boolean },
): Read<number | bigint> {
  switch (width) {
    case 1:
      return isSigned ? (at) => values.readInt8(at) : (at) => values[at] as number
    case 2:
      return isSigned ? (at) => values.readInt16LE(at * 2) : (at) => values.readUInt16LE(at * 2)
    case 4:
      return isSigned ? (at) => values.readInt32LE(at * 4) : (at) => values.readUInt32LE(at * 4)
    case 8:
      return isSigned ? (at) => values.readBigInt64LE(at * 8) : (at) => smallOrBig(values, at * 8)
    default:
      return (at) => {
        const high = isSigned ? values.readBigInt64LE(at * 16 + 8) : values.readBigUInt64LE(at * 16 + 8)
        return (high << 64n) | values.readBigUInt64LE(at * 16)
      }
  }
}

/** A number below 2^53 is read without a bigint, which costs several times as much. */
function smallOrBig(values: Buffer, offset: number): number | bigint {
  const high = values.readUInt32LE(offset + 4)
  return high < 0x20_0000 ? high * 2 ** 32 + values.readUInt32LE(offset) : values.readBigUInt64LE(offset)
}

/** The shortest text that reads back as the same number. */
export function floatText(values: Buffer, width: number): Read<string> {
  if (width === 8) return (at) => shortest(values.readDoubleLE(at * 8), String)
  return (at) => shortest(values.readFloatLE(at * 4), shortestSingle)
}

function shortest(value: number, print: (value: number) => string): string {
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf'
  if (Object.is(value, -0)) return MINUS_ZERO
  return print(value).replace('e+', 'e')
}

function shortestSingle(value: number): string {
  for (let digits = 1; digits < 9; digits++) {
    const text = value.toPrecision(digits)
    if (Math.fround(Number(text)) === value) return String(Number(text))
  }
  return String(Number(value.toPrecision(9)))
}

/** Dates as `YYYY-MM-DD`. */
export function dateText(values: Buffer, { width }: { readonly width: number }): Read<string> {
  const day = createDayTexts()
  return width === 2 ? (at) => day(values.readUInt16LE(at * 2)) : (at) => day(values.readInt32LE(at * 4))
}

/** How times are printed. */
export type TimeStyle = {
  readonly format: DateTimeFormat
  /** Time zone of the types that have none. */
  readonly zone: string
}

export const PLAIN_TIMES: TimeStyle = { format: 'simple', zone: 'UTC' }

/** Times as `YYYY-MM-DD hh:mm:ss` in the zone of the type, with the digits of its scale; or as the style requests. */
export function timeText(
  values: Buffer,
  type: { readonly width: number; readonly scale: number; readonly zone: string | undefined },
  style: TimeStyle,
): Read<string> {
  const print = secondPrinter(style, type.zone)
  const end = style.format === 'iso' ? 'Z' : ''
  if (type.width === 4) return (at) => print(values.readUInt32LE(at * 4)) + end
  const { scale } = type
  const perSecond = 10n ** BigInt(scale)
  return (at) => {
    const ticks = values.readBigInt64LE(at * 8)
    const fraction = ((ticks % perSecond) + perSecond) % perSecond
    const seconds = print(Number((ticks - fraction) / perSecond))
    return (scale === 0 ? seconds : `${seconds}.${String(fraction).padStart(scale, '0')}`) + end
  }
}

function secondPrinter({ format, zone }: TimeStyle, own: string | undefined): (seconds: number) => string {
  if (format === 'unix_timestamp') return String
  const day = createDayTexts()
  if (format === 'iso') return (seconds) => secondText(seconds, day, 'T')
  const offset = createZoneOffset(own ?? zone)
  return (seconds) => secondText(seconds + offset(seconds), day, ' ')
}

function secondText(seconds: number, day: (days: number) => string, between: string): string {
  const days = Math.floor(seconds / DAY_SECONDS)
  const rest = seconds - days * DAY_SECONDS
  return `${day(days)}${between}${two(Math.floor(rest / 3600))}:${two(Math.floor(rest / 60) % 60)}:${two(rest % 60)}`
}

function two(value: number): string {
  return value < 10 ? `0${value}` : String(value)
}

/** Neighbouring rows usually have the same day. */
function createDayTexts(): (days: number) => string {
  let lastDays = Number.NaN
  let lastText = ''
  return (days) => {
    if (days !== lastDays) {
      lastDays = days
      lastText = dayText(days)
    }
    return lastText
  }
}

const DATE_DAYS_MAX = 100_000_000

function dayText(days: number): string {
  if (Math.abs(days) > DATE_DAYS_MAX) return days > 0 ? 'inf' : '-inf'
  const date = new Date(days * DAY_SECONDS * 1000)
  const year = date.getUTCFullYear()
  const digits = String(Math.abs(year)).padStart(4, '0')
  return `${year < 0 ? '-' : ''}${digits}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`
}

/** Two 64-bit numbers, the higher one first, each little-endian. */
export function uuidText(values: Buffer): Read<string> {
  return (at) => {
    const high = values
      .readBigUInt64LE(at * 16)
      .toString(16)
      .padStart(16, '0')
    const low = values
      .readBigUInt64LE(at * 16 + 8)
      .toString(16)
      .padStart(16, '0')
    return `${high.slice(0, 8)}-${high.slice(8, 12)}-${high.slice(12)}-${low.slice(0, 4)}-${low.slice(4)}`
  }
}
