import { BroadcastChannel, isMainThread, workerData } from 'node:worker_threads'

/** Preloaded with `--import` into a `sluice` process: on SIGUSR2 its thread `gateway-2` ends with an error that nothing catches. */
const CHANNEL = 'end-thread'
const ENDED = 'gateway-2'

const channel = new BroadcastChannel(CHANNEL)
channel.unref()
if (isMainThread) process.on('SIGUSR2', () => channel.postMessage(ENDED))
else {
  channel.onmessage = ({ data }) => {
    const { name } = (workerData as { data?: { name?: string } } | null)?.data ?? {}
    if (name === data) setImmediate(fail)
  }
}

function fail(): never {
  throw new Error('ended by the test')
}
