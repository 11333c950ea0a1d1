import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { Destination } from '../../access/store/model.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { ServiceError } from '../../core/error.ts'
import { printBytesShort } from '../../core/human-units.ts'
import { printAddressPort } from '../../platform/net/ip-range.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { openUdpPort } from '../../platform/udp/open-port.ts'
import type { Config, ConfigSection } from '../../processes/compose/config/config.ts'
import { bad, type Finding, ok, warn } from '../../processes/compose/config/finding.ts'
import { undecodedReason } from '../../processes/compose/config/served.ts'
import type { Settings } from '../../processes/compose/config/settings.ts'
import { destinationRulesOf } from '../../processes/compose/services/shreds.ts'
import { refusalOf, refusalReason } from '../../shreds/destinations/rules.ts'
import { parseListen } from '../../shreds/options.ts'
import { askProcess } from '../control.ts'
import { scheduleFinding } from './schedule.ts'

type CheckInput = Pick<Settings, 'config' | 'loaded'>

/** The range of shreds per second that a cluster sends. */
const RATE_MIN = 100
const RATE_MAX = 170_000

/** The UDP port of the shred service, and whether shreds arrive. */
export async function checkShreds(
  { shreds, localnet, upstreams }: Config,
  { stateDir, sections }: { readonly stateDir: string; readonly sections: readonly ConfigSection[] },
): Promise<Finding[]> {
  if (!sections.includes('shreds')) return [ok('shreds', 'disabled')]
  const status = await askProcess(stateDir, (control) => control.call('shreds'))
  if (status === undefined) return [await checkPort(shreds.listen), ...(await tryBuffer(shreds))]
  const findings: Finding[] = [
    ok('port', `UDP ${printAddressPort(status.address.host, status.address.port)} is held by Sluice`),
  ]
  const rate = status.sourceRates.reduce((sum, each) => sum + each, 0)
  const isEmbedded = localnet.enabled ?? upstreams.nodes.length === 0
  const where = `${status.address.host}:${status.address.port}`
  if (status.counts.received === 0 || rate === 0) {
    const message = status.counts.received === 0 ? 'no shred has arrived yet' : 'shreds have stopped arriving'
    findings.push(
      warn(
        'shred source',
        `${message} at ${where}`,
        `tcpdump -ni any udp port ${status.address.port}   # then check shreds.sources`,
      ),
    )
  } else if (!isEmbedded && (rate < RATE_MIN || rate > RATE_MAX)) {
    findings.push(
      warn(
        'shred source',
        `${rate} shreds per second is outside the range of a cluster`,
        'compare it with the rate that your shred source sends',
      ),
    )
  } else findings.push(ok('shred source', `${rate} shreds per second, newest slot ${status.newestSlot ?? 'unknown'}`))
  if (status.alarms.length > 0) {
    findings.push(bad('shred alarm', status.alarms.join(', '), 'docs/shreds.md explains each alarm'))
  }
  findings.push(scheduleFinding('shred relay', status.schedule))
  findings.push(bufferFinding(status.receiveBufferBytes, shreds.receiveBufferBytes))
  return findings
}

/** Whether customers of ShredStream Decoded get data. */
export function checkDecoded(config: Config, sections: readonly ConfigSection[]): Finding[] {
  const reason = undecodedReason(config, sections)
  if (reason === undefined) return []
  return [
    warn(
      'decoded',
      reason,
      'set shreds.enabled = true and products.shreds-decoded.status = "preview", or turn both bundle.entries and the product off',
    ),
  ]
}

/** The buffer that the kernel grants. The sysctl limit alone is not enough, because a privileged process may exceed it. */
async function tryBuffer({
  listen,
  engine,
  receiveBufferBytes,
  sendBufferBytes,
}: Settings['config']['shreds']): Promise<Finding[]> {
  const host = isIPv6(parseListen(listen).host) ? '::1' : '127.0.0.1'
  const options = { listen: { host, port: 0 }, sources: [], engine, receiveBufferBytes, sendBufferBytes }
  try {
    const { port } = await openUdpPort(options, { clock: systemClock })
    using _open = port
    return [bufferFinding(port.receiveBufferBytes, receiveBufferBytes)]
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return [bad('shred buffer', error.message, error.fix ?? 'sluice config check')]
  }
}

export function bufferFinding(granted: number, wanted: number): Finding {
  if (granted >= wanted) return ok('shred buffer', printBytesShort(granted))
  return warn(
    'shred buffer',
    `the kernel grants ${printBytesShort(granted)} of ${printBytesShort(wanted)}: bursts of shreds would be lost`,
    `sysctl -w net.core.rmem_max=${wanted}   # and in /etc/sysctl.d, to keep it after a reboot`,
  )
}

/** Destinations in the store that the configuration does not allow, except those of one customer. */
export async function checkDestinations(
  store: AccessStore,
  settings: CheckInput,
  exceptCustomerId?: string,
): Promise<Finding[]> {
  const rules = destinationRulesOf(settings)
  const names = new Map((await store.list('subscriptions')).map((sub) => [sub.id, sub]))
  const findings: Finding[] = []
  const inForce = (await store.list('destinations')).filter(({ id }) => !id.includes('/'))
  for (const destination of inForce) {
    const subscription = names.get(destination.id)
    const refusal = refusalOf(destination, rules)
    if (subscription === undefined || subscription.state === 'cancelled' || refusal === undefined) continue
    if (subscription.customerId === exceptCustomerId) continue
    findings.push(
      bad(
        'destination',
        `${subscription.name} receives no shreds at ${position(destination)}: ${refusalReason(refusal)}`,
        `sluice shred set-destination ${subscription.name} IP:PORT`,
      ),
    )
  }
  return findings
}

const position = ({ ip, port }: Destination): string => printAddressPort(ip, port)

function checkPort(listen: string): Promise<Finding> {
  const { host, port } = parseListen(listen)
  return new Promise((done) => {
    const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
    socket.once('error', (error: NodeJS.ErrnoException) => {
      const fix = `ss -lunp 'sport = :${port}'   # then stop it, or change shreds.listen`
      done(bad('port', `shreds: UDP ${listen} cannot be opened (${error.code ?? 'error'})`, fix))
    })
    socket.bind({ address: host, port, exclusive: true }, () =>
      socket.close(() => done(ok('port', `UDP ${listen} is free`))),
    )
  })
}
