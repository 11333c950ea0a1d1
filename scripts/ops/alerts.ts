import type { Alert } from './alert.ts'
import { BUNDLE_ALERTS, UPSTREAMS_ALERTS } from './gateway-alerts.ts'
import { ACCESS_ALERTS, DISK_ALERTS, PROCESS_ALERTS } from './process-alerts.ts'
import { EXECUTION_ALERTS, SERVICES_ALERTS } from './service-alerts.ts'
import { THREAD_ALERTS } from './thread-alerts.ts'

export const ALERTS: readonly Alert[] = [
  ...PROCESS_ALERTS,
  ...THREAD_ALERTS,
  ...DISK_ALERTS,
  ...ACCESS_ALERTS,
  ...BUNDLE_ALERTS,
  ...UPSTREAMS_ALERTS,
  ...SERVICES_ALERTS,
  ...EXECUTION_ALERTS,
]
