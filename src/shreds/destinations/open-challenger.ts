import { openUdpSocket } from '../../platform/udp/socket.ts'
import { type Challenger, type ChallengerDeps, createChallenger } from './challenge.ts'

/** Opens the sockets from which challenges are sent and on which their echoes arrive. On a machine without IPv6, IPv4 only. */
export async function openChallenger(deps: Omit<ChallengerDeps, 'send'>): Promise<Challenger & Disposable> {
  using opening = new DisposableStack()
  const challenger = createChallenger({
    ...deps,
    send: (packet, to) => (to.ip.includes(':') ? socket6 : socket4)?.send(packet, to),
  })
  const socket4 = opening.use(await openUdpSocket({ listen: { host: '0.0.0.0', port: 0 } }, challenger.receive))
  const socket6 = await openUdpSocket({ listen: { host: '::', port: 0 } }, challenger.receive).catch(() => undefined)
  if (socket6 !== undefined) opening.use(socket6)
  const opened = opening.move()
  return { ...challenger, [Symbol.dispose]: () => opened.dispose() }
}
