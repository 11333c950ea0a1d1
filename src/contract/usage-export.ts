/** What each line of an export of usage is the sum of, beside its subscription. */
export const USAGE_EXPORT_GROUPINGS = ['day', 'method', 'interface'] as const
export type UsageExportGrouping = (typeof USAGE_EXPORT_GROUPINGS)[number]

export const USAGE_EXPORT_FORMATS = ['csv', 'jsonl'] as const
export type UsageExportFormat = (typeof USAGE_EXPORT_FORMATS)[number]

export const USAGE_EXPORT_CONTENT_TYPES: Readonly<Record<UsageExportFormat, string>> = {
  csv: 'text/csv; charset=utf-8',
  jsonl: 'application/x-ndjson',
}
