import type { GrantedSchedule } from '../../../platform/native/thread-schedule.ts'

/** For `status`: the priority and the processor of a service's thread where they are not the usual ones, and what the system did not permit. */
export function scheduleNote(service: string, schedule: GrantedSchedule | undefined): Readonly<Record<string, string>> {
  if (schedule === undefined) return {}
  const { priority, core, refused } = schedule
  const parts = [
    ...(priority === 'normal' && refused.length === 0 ? [] : [`priority ${priority}`]),
    ...(core === null ? [] : [`on processor ${core}`]),
    ...refused.map((reason) => `not permitted: ${reason}`),
  ]
  return parts.length === 0 ? {} : { [service]: parts.join(', ') }
}
