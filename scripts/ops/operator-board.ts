import type { Board } from './board.ts'
import { ACCESS_PANELS, BUNDLE_PANELS, OVERVIEW_PANELS, PROCESS_PANELS, UPSTREAMS_PANELS } from './gateway-panels.ts'
import { ADMIN_PANELS, DECODED_PANELS, INDEXER_PANELS, SENDER_PANELS, SHREDS_PANELS } from './service-panels.ts'
import { THREAD_PANELS } from './thread-panels.ts'

export const OPERATOR_BOARD: Board = {
  uid: 'sluice-operator',
  title: 'Sluice: operator',
  processes: 'sluice_build_info',
  rows: [
    { title: 'Overview', panels: OVERVIEW_PANELS },
    { title: 'Access', panels: ACCESS_PANELS },
    { title: 'Bundle', panels: BUNDLE_PANELS },
    { title: 'Upstreams', panels: UPSTREAMS_PANELS },
    { title: 'Sender', panels: SENDER_PANELS },
    { title: 'Shreds', panels: SHREDS_PANELS },
    { title: 'Shreds, decoded', panels: DECODED_PANELS },
    { title: 'Indexer', panels: INDEXER_PANELS },
    { title: 'Admin API', panels: ADMIN_PANELS },
    { title: 'Process', panels: PROCESS_PANELS },
    { title: 'Threads', panels: THREAD_PANELS },
  ],
}
