/** Spreadsheets run a text that begins like this as a formula. */
const FORMULA = /^[=+\-@\t\r]/
const NUMBER = /^-?\d+(\.\d+)?$/

/** CSV with a header, as RFC 4180 has it. */
export function printCsv<Row>(
  rows: readonly Row[],
  columns: readonly { readonly name: string; readonly value: (row: Row) => string | number }[],
): string {
  const lines = [columns.map(({ name }) => name), ...rows.map((row) => columns.map(({ value }) => value(row)))]
  return lines.map((line) => `${line.map(printField).join(',')}\r\n`).join('')
}

function printField(value: string | number): string {
  const text = String(value)
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
