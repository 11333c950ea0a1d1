import type { DuckType } from '../../platform/db/duckdb-column.ts'
import { QueryError } from '../query/error.ts'
import { arrow } from './arrow/arrow.ts'
import { jsonColumns } from './json-columns.ts'
import { native } from './native.ts'
import { parquet } from './parquet/parquet.ts'
import { pretty } from './pretty.ts'
import { rowBinary } from './row-binary.ts'
import * as texts from './text-formats.ts'
import { textRows } from './text-rows.ts'
import type { TypedColumn } from './value-type.ts'
import { type BatchFormat, type BatchLimits, type ResultWriter, writeBatches } from './writer.ts'

type Format = {
  readonly contentType: string
  readonly limits: BatchLimits
  create(columns: readonly TypedColumn[], options: texts.TextOptions): BatchFormat
}

const JSON_TYPE = 'application/json; charset=UTF-8'
const LINES_TYPE = 'application/x-ndjson; charset=UTF-8'
const TABS_TYPE = 'text/tab-separated-values; charset=UTF-8'
const PLAIN_TYPE = 'text/plain; charset=UTF-8'
const BINARY_TYPE = 'application/octet-stream'
const csvType = (header: 'absent' | 'present'): string => `text/csv; charset=UTF-8; header=${header}`

const MIB = 1024 * 1024
/** Rows that are formatted together. Few, because the first ones should not wait for the others. */
const ROWS: BatchLimits = { rowsMax: 2048, bytesMax: MIB }
/** Blocks of Native and Arrow; large enough that names and types do not count. */
const BLOCKS: BatchLimits = { rowsMax: 32_768, bytesMax: 4 * MIB }
/** Row groups of Parquet, which are listed at the end of the file. */
const ROW_GROUPS: BatchLimits = { rowsMax: 131_072, bytesMax: 4 * MIB }
/** Rows of one table, as ClickHouse prints them. */
const TABLES: BatchLimits = { rowsMax: 1000, bytesMax: MIB }

const FORMATS: Readonly<Record<string, Format>> = {
  JSON: text(JSON_TYPE, texts.jsonDocument('objects', 'json')),
  JSONCompact: text(JSON_TYPE, texts.jsonDocument('arrays', 'json')),
  JSONStrings: text(JSON_TYPE, texts.jsonDocument('objects', 'strings')),
  JSONCompactStrings: text(JSON_TYPE, texts.jsonDocument('arrays', 'strings')),
  JSONEachRow: text(LINES_TYPE, texts.jsonLines('objects', 'json')),
  JSONStringsEachRow: text(LINES_TYPE, texts.jsonLines('objects', 'strings')),
  JSONCompactEachRow: text(LINES_TYPE, texts.jsonLines('arrays', 'json')),
  JSONCompactEachRowWithNames: text(LINES_TYPE, texts.jsonLines('arrays', 'json', 'names')),
  JSONCompactEachRowWithNamesAndTypes: text(LINES_TYPE, texts.jsonLines('arrays', 'json', 'names-and-types')),
  JSONCompactStringsEachRow: text(LINES_TYPE, texts.jsonLines('arrays', 'strings')),
  JSONCompactStringsEachRowWithNames: text(LINES_TYPE, texts.jsonLines('arrays', 'strings', 'names')),
  JSONCompactStringsEachRowWithNamesAndTypes: text(LINES_TYPE, texts.jsonLines('arrays', 'strings', 'names-and-types')),
  JSONColumns: columnar('names'),
  JSONCompactColumns: columnar('none'),
  JSONColumnsWithMetadata: columnar('metadata'),
  TabSeparated: text(TABS_TYPE, texts.tabSeparated('none')),
  TSKV: text(TABS_TYPE, texts.keyValueTabs),
  TabSeparatedWithNames: text(TABS_TYPE, texts.tabSeparated('names')),
  TabSeparatedWithNamesAndTypes: text(TABS_TYPE, texts.tabSeparated('names-and-types')),
  CSV: text(csvType('absent'), texts.commaSeparated('none')),
  CSVWithNames: text(csvType('present'), texts.commaSeparated('names')),
  CSVWithNamesAndTypes: text(csvType('present'), texts.commaSeparated('names-and-types')),
  Values: text(PLAIN_TYPE, texts.insertValues),
  Vertical: text(PLAIN_TYPE, texts.vertical),
  Markdown: text('text/markdown; charset=UTF-8', texts.markdown),
  XML: text('application/xml; charset=UTF-8', texts.xml),
  Pretty: { contentType: PLAIN_TYPE, limits: TABLES, create: (columns, options) => pretty(columns, 'full', options) },
  PrettyCompact: {
    contentType: PLAIN_TYPE,
    limits: TABLES,
    create: (columns, options) => pretty(columns, 'compact', options),
  },
  RowBinary: binary(ROWS, (columns) => rowBinary(columns, 'none')),
  RowBinaryWithNames: binary(ROWS, (columns) => rowBinary(columns, 'names')),
  RowBinaryWithNamesAndTypes: binary(ROWS, (columns) => rowBinary(columns, 'names-and-types')),
  Native: binary(BLOCKS, native),
  Parquet: binary(ROW_GROUPS, parquet),
  Arrow: binary(BLOCKS, (columns) => arrow(columns, 'file')),
  ArrowStream: binary(BLOCKS, (columns) => arrow(columns, 'stream')),
  Null: { contentType: PLAIN_TYPE, limits: ROWS, create: () => ({ *batch() {} }) },
}
const ALIASES: Readonly<Record<string, string>> = {
  TSV: 'TabSeparated',
  TSVWithNames: 'TabSeparatedWithNames',
  TSVWithNamesAndTypes: 'TabSeparatedWithNamesAndTypes',
  NDJSON: 'JSONEachRow',
  JSONLines: 'JSONEachRow',
  PrettyNoEscapes: 'Pretty',
  PrettyCompactNoEscapes: 'PrettyCompact',
}

/** Formats that the embedded engine writes. */
export const FORMAT_NAMES: readonly string[] = Object.keys(FORMATS)

/** The format by its full name. Throws QueryError for one that the embedded engine does not write. */
export function formatNamed(name: string): { readonly name: string; readonly contentType: string } {
  const full = (Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined) ?? name
  const format = Object.hasOwn(FORMATS, full) ? FORMATS[full] : undefined
  if (format === undefined)
    throw new QueryError(
      'UNKNOWN_FORMAT',
      `Format ${name.replaceAll(/\W/g, '?').slice(0, 60)} is not supported. Supported are: ${FORMAT_NAMES.join(', ')}.`,
    )
  return { name: full, contentType: format.contentType }
}

/** `format` is a full name. `engineTypes` are the engine's types of the columns. */
export function createResultWriter(
  columns: readonly TypedColumn[],
  engineTypes: readonly DuckType[],
  { format, ...options }: texts.TextOptions & { readonly format: string },
): ResultWriter {
  const { create, limits } = FORMATS[format] as Format
  return writeBatches(columns, engineTypes, create(columns, options), limits)
}

function text(contentType: string, make: texts.MakeTextFormat): Format {
  return { contentType, limits: ROWS, create: (columns, options) => textRows(columns, make(columns, options)) }
}

function columnar(form: 'names' | 'none' | 'metadata'): Format {
  return {
    contentType: JSON_TYPE,
    limits: ROWS,
    create: (columns, options) => jsonColumns(columns, { ...options, form }),
  }
}

function binary(limits: BatchLimits, create: Format['create']): Format {
  return { contentType: BINARY_TYPE, limits, create }
}
