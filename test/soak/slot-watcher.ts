import { WebSocket } from 'ws'
import { type Client, pause, type SoakContext } from './client.ts'

type Frame = { method?: string; result?: number; params?: { subscription: number; result: { slot?: number } } }

const SUBSCRIBE = '{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}'

/** Subscribes to slots on one WebSocket after another: each slot once, in order, and none missing without a gap notification. Pauses reading at times. */
export const slotWatcher: Client = async (context) => {
  while (!context.isOver()) {
    await watchOnce(context)
    await pause(100 + context.random(1000))
  }
}

async function watchOnce({ service, random, isOver, reportViolation, count }: SoakContext): Promise<void> {
  const socket = new WebSocket(`ws://${service.at.ws}/?gaps=1`, {
    headers: { 'x-token': service.token },
    perMessageDeflate: false,
  })
  const ended = new Promise<number>((resolve) => void socket.on('close', resolve))
  socket.on('error', () => {})
  socket.on('open', () => socket.send(SUBSCRIBE))
  let last: number | undefined
  let isGapReported = false
  let subscription: number | undefined
  socket.on('message', (data: Buffer) => {
    const frame = JSON.parse(data.toString()) as Frame
    if (frame.result !== undefined) subscription = frame.result
    if (frame.params !== undefined && frame.params.subscription !== subscription)
      reportViolation(`subscription ${subscription} received a frame of ${frame.params.subscription}`)
    if (frame.method === 'gapNotification') {
      isGapReported = true
      count('gaps reported')
    }
    const slot = frame.params?.result.slot
    if (frame.method !== 'slotNotification' || slot === undefined) return
    count('slots')
    if (last !== undefined && slot <= last) reportViolation(`slot ${slot} after ${last}`)
    if (last !== undefined && slot > last + 1 && !isGapReported)
      reportViolation(`slots after ${last} up to ${slot} are missing`)
    last = slot
    isGapReported = false
  })
  const endMs = performance.now() + 2000 + random(40_000)
  while (performance.now() < endMs && !isOver() && socket.readyState !== WebSocket.CLOSED) {
    if (random(40) === 0) {
      socket.pause()
      await pause(random(2000))
      socket.resume()
    }
    await pause(250)
  }
  if (random(2) === 0) socket.terminate()
  else socket.close()
  const closing = setTimeout(() => socket.terminate(), 5000)
  count(`ws close ${await ended}`)
  clearTimeout(closing)
}
