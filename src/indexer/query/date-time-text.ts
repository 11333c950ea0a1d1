import type { DateTimeFormat } from '../session/settings.ts'
import { textOf } from './format-values.ts'

/** Writes the times of a row as `date_time_output_format` requests; `types` are the engine's types of the columns. */
export function createDateTimeText(
  format: DateTimeFormat,
  types: readonly string[],
): (row: readonly unknown[]) => readonly unknown[] {
  if (format === 'simple' || !types.some(isTime)) return (row) => row
  const write = format === 'iso' ? isoOf : unixOf
  const isTimes = types.map(isTime)
  return (row) => row.map((value, at) => (isTimes[at] && value !== null ? write(textOf(value)) : value))
}

function isTime(type: string): boolean {
  return type.startsWith('TIMESTAMP')
}

/** `YYYY-MM-DD hh:mm:ss`, with a fraction or without, as `YYYY-MM-DDThh:mm:ssZ`. */
function isoOf(text: string): string {
  return `${text.replace(' ', 'T')}Z`
}

function unixOf(text: string): string {
  const [seconds = '', fraction] = text.split('.')
  const unix = String(Date.parse(isoOf(seconds)) / 1000)
  return fraction === undefined ? unix : `${unix}.${fraction}`
}
