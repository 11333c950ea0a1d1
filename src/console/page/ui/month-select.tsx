import { recentMonths } from '../../../ui/model/periods.ts'

const MONTHS = 13

/** A month of the URL, or the last complete one. */
export function monthNamed(text: string | undefined): string {
  const months = recentMonths(Date.now(), MONTHS)
  return months.find((month) => month === text) ?? months[1] ?? ''
}

export function MonthSelect({ id, value, onChange }: { id: string; value: string; onChange: (month: string) => void }) {
  const [present, ...past] = recentMonths(Date.now(), MONTHS)
  return (
    <label class="inline-field" for={id}>
      Month
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value={present}>{present} (so far)</option>
        {past.map((month) => (
          <option key={month} value={month}>
            {month}
          </option>
        ))}
      </select>
    </label>
  )
}
