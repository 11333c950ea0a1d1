import type { Upstream } from './upstream.ts'
import type { LinkSubscription } from './ws/link-subscriptions.ts'

export const account = (key: string) => ({
  method: 'accountSubscribe',
  unsubscribe: 'accountUnsubscribe',
  params: `["${key}"]`,
})

/** For tests: subscribes and keeps what comes. */
export function subscribe(upstream: Upstream, wanted: ReturnType<typeof account>) {
  const seen = {
    ready: 0,
    refused: '',
    lost: '',
    frames: [] as string[],
    handle: undefined as LinkSubscription | undefined,
  }
  seen.handle = upstream.ws.subscribe(wanted, {
    onReady: () => void (seen.ready += 1),
    onRefused: (response) => void (seen.refused = response),
    onNotification: (frame, { idFrom, idTo }) =>
      void seen.frames.push(`${frame.toString('utf8', 0, idFrom)}ID${frame.toString('utf8', idTo)}`),
    onLost: (reason) => void (seen.lost = reason),
  })
  return seen
}
