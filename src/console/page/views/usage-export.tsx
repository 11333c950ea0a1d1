import { useSignal } from '@preact/signals'
import { ADMIN_ROUTES } from '../../../contract/admin-routes.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Switch } from '../../../ui/parts/switch.tsx'
import { MonthSelect, monthNamed } from '../ui/month-select.tsx'

const GROUPINGS = [
  { value: 'day', label: 'By day' },
  { value: 'method', label: 'By method' },
  { value: 'interface', label: 'By interface' },
] as const
const FORMATS = [
  { value: 'csv', label: 'CSV' },
  { value: 'jsonl', label: 'JSON lines' },
] as const

/** Downloads the usage of a month. The browser writes it to the disk while it arrives: it can be large. */
export function UsageExport() {
  const month = useSignal(monthNamed(undefined))
  const by = useSignal<(typeof GROUPINGS)[number]['value']>('day')
  const format = useSignal<(typeof FORMATS)[number]['value']>('csv')
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
