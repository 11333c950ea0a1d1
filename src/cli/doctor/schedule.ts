import type { GrantedSchedule } from '../../platform/native/thread-schedule.ts'
import { type Finding, ok, warn } from '../../processes/compose/config/finding.ts'

/** Whether a thread has the priority and the processor of the configuration. */
export function scheduleFinding(check: string, { priority, core, refused }: GrantedSchedule): Finding {
  // The kernel applies nice values within a scheduling group: the control group of a unit, or the session (autogroup).
  const reach = priority === 'raised' ? ' within this service (CPUWeight= of its unit: against others)' : ''
  const now = `priority ${priority}${reach}${core === null ? '' : `, on processor ${core}`}`
  if (refused.length === 0) return ok(check, now)
  return warn(check, `${now}; ${refused.join('; ')}`, 'install ops/systemd/relay-priority.conf, then restart')
}
