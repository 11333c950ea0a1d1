import { useSignal } from '@preact/signals'
import { ADMIN_ROUTES } from '../../../contract/admin-routes.ts'
import {
  USAGE_EXPORT_FORMATS,
  USAGE_EXPORT_GROUPINGS,
  type UsageExportFormat,
  type UsageExportGrouping,
} from '../../../contract/usage-export.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Switch } from '../../../ui/parts/switch.tsx'
import { MonthSelect, monthNamed } from '../ui/month-select.tsx'

const GROUPING_LABELS: Readonly<Record<UsageExportGrouping, string>> = {
  day: 'By day',
  method: 'By method',
  interface: 'By interface',
}
const FORMAT_LABELS: Readonly<Record<UsageExportFormat, string>> = { csv: 'CSV', jsonl: 'JSON lines' }
const GROUPINGS = USAGE_EXPORT_GROUPINGS.map((value) => ({ value, label: GROUPING_LABELS[value] }))
const FORMATS = USAGE_EXPORT_FORMATS.map((value) => ({ value, label: FORMAT_LABELS[value] }))

/** Downloads the usage of a month. The browser writes it to the disk while it arrives: it can be large. */
export function UsageExport() {
  const month = useSignal(monthNamed(undefined))
  const by = useSignal<UsageExportGrouping>('day')
  const format = useSignal<UsageExportFormat>('csv')
  const query = new URLSearchParams({ month: month.value, by: by.value, format: format.value })
  return (
    <Panel id="export" title="Usage export">
      <p class="dim">Calls, units and refused calls of every subscription, for your own accounting.</p>
      <div class="filter-row">
        <MonthSelect id="export-month" value={month.value} onChange={(value) => (month.value = value)} />
        <Switch label="Lines" options={GROUPINGS} value={by.value} onChange={(value) => (by.value = value)} />
        <Switch label="Format" options={FORMATS} value={format.value} onChange={(value) => (format.value = value)} />
        <a
          class="button"
          href={`${ADMIN_ROUTES.usageExport.path}?${query}`}
          download={`usage-${month.value}-by-${by.value}.${format.value}`}
        >
          Download usage
        </a>
      </div>
    </Panel>
  )
}
