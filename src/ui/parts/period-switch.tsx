import { PERIOD_LABELS, type PeriodName } from '../model/periods.ts'
import { Switch } from './switch.tsx'

type PeriodSwitchProps = {
  periods: readonly PeriodName[]
  value: PeriodName
  onChange: (period: PeriodName) => void
}

/** The period of a usage view. */
export function PeriodSwitch({ periods, value, onChange }: PeriodSwitchProps) {
  const options = periods.map((name) => ({ value: name, label: PERIOD_LABELS[name] }))
  return <Switch label="Period" options={options} value={value} onChange={onChange} />
}
