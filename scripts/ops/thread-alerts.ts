import type { Alert } from './alert.ts'
import { AT, flat, grows } from './alert-examples.ts'

export const THREAD_ALERTS: readonly Alert[] = [
  {
    name: 'SluiceThreadRestarting',
    expr: 'increase(sluice_thread_restarts_total[15m]) > 2',
    for: '0s',
    severity: 'page',
    summary:
      'The thread {{ $labels.thread }} of Sluice at {{ $labels.instance }} restarted more than twice in 15 minutes.',
    does: [
      'Each end is in the log with its reason: `journalctl -u sluice -p warning`. Connections of that thread were lost; those of other threads were not.',
      'If it ran out of heap, see the panel of heaps by thread. Else report the error of the log; until it is fixed, the service can run in a process of its own.',
    ],
    fires: { 'sluice_thread_restarts_total{thread="gateway-1",instance="a"}': grows(1) },
    quiet: { 'sluice_thread_restarts_total{thread="gateway-1",instance="a"}': '0x30 1x30' },
    labels: { ...AT, thread: 'gateway-1' },
  },
  {
    name: 'SluiceThreadDown',
    expr: 'sluice_thread_up == 0',
    for: '1m',
    severity: 'page',
    summary: 'The thread {{ $labels.thread }} of Sluice at {{ $labels.instance }} does not run.',
    does: [
      '`sluice status` names the service that is affected and the reason. It is started again with growing pauses; the log has the error of each start.',
      'If it cannot start, correct what the error names, or restart the process.',
    ],
    fires: { 'sluice_thread_up{thread="sender",instance="a"}': flat(0) },
    quiet: { 'sluice_thread_up{thread="sender",instance="a"}': flat(1) },
    labels: { ...AT, thread: 'sender' },
  },
]
