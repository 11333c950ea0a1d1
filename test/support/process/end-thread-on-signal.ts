import { BroadcastChannel, isMainThread, workerData } from 'node:worker_threads'

/** Preloaded with `--import` into a `sluice` process: each SIGUSR2 ends the next thread of `END_THREADS` with an error that nothing catches. */
const CHANNEL = 'end-thread'
const ENDED = (process.env['END_THREADS'] ?? 'gateway-2').split(' ')

const channel = new BroadcastChannel(CHANNEL)
channel.unref()
if (isMainThread) process.on('SIGUSR2', () => channel.postMessage(ENDED.shift()))
else {
  channel.onmessage = ({ data }) => {
    const { name } = (workerData as { data?: { name?: string } } | null)?.data ?? {}
    if (name === data) setImmediate(fail)
  }
}

function fail(): never {
  throw new Error('ended by the test')
}
