import { counted, gauge, type Panel, worst } from './board.ts'

export const THREAD_PANELS: readonly Panel[] = [
  {
    title: 'Threads running',
    how: '1 while the thread runs, 0 from its end to its next start.',
    unit: 'none',
    queries: [worst('sluice_thread_up', 'instance, thread')],
  },
  {
    title: 'Restarts of threads',
    how: 'Starts of a thread after it had ended.',
    unit: 'short',
    queries: [counted('sluice_thread_restarts_total', 'instance, thread')],
  },
  {
    title: 'Restarts of shreds threads',
    how: 'Starts of the relay, of the thread that checks signatures and of the decoder after they had ended.',
    unit: 'short',
    queries: [counted('sluice_shreds_thread_restarts_total', 'instance, thread')],
  },
  {
    title: 'Event loop delay by thread',
    how: '99th percentile of the event loop delay in the last 10 s.',
    unit: 's',
    queries: [worst('sluice_thread_event_loop_delay_seconds', 'instance, thread', 'stat="p99"')],
  },
  {
    title: 'Event loop use by thread',
    how: 'Share of the time in which the event loop of the thread worked.',
    unit: 'percentunit',
    queries: [worst('sluice_thread_event_loop_busy_ratio', 'instance, thread')],
  },
  {
    title: 'Heap by thread',
    how: 'JavaScript heap of the thread in use.',
    unit: 'bytes',
    queries: [gauge('sluice_thread_heap_bytes', 'instance, thread')],
  },
]
