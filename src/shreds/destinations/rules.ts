import { type AddressKind, addressKind, canonicalIp } from '../../platform/net/ip-range.ts'
import { REFLECTOR_PORTS } from '../../platform/net/reflector-ports.ts'

/** Which addresses may receive shreds. Checked when a destination is set and again whenever leases are decided. */
export type DestinationRules = {
  readonly allowLoopback: boolean
  readonly allowPrivate: boolean
  /** Addresses of this machine. */
  readonly ownAddresses: ReadonlySet<string>
  /** The port the relay receives shreds on: sending there would feed it its own packets. */
  readonly sourcePort: number
}

export type DestinationRefusal =
  | Exclude<AddressKind, 'public'>
  | 'not-literal'
  | 'low-port'
  | 'reflector-port'
  | 'own-address'
  | 'source-port'

/** What the rules decide about a destination, and its address in one spelling. */
export type DestinationCheck = (destination: Address) => CheckedDestination

type Address = { readonly ip: string; readonly port: number }
type CheckedDestination = { readonly address: string; readonly refusal: DestinationRefusal | undefined }

const PORT_MIN = 1024

/** Checks each destination once: leases are decided twice a second for thousands of them. A changed destination is another object. */
export function createDestinationCheck(rules: DestinationRules): DestinationCheck {
  const checked = new WeakMap<Address, CheckedDestination>()
  return (destination) => {
    const known = checked.get(destination)
    if (known !== undefined) return known
    const address = `${canonicalIp(destination.ip)} ${destination.port}`
    const result = { address, refusal: refusalOf(destination, rules) }
    checked.set(destination, result)
    return result
  }
}

export function refusalOf({ ip, port }: Address, rules: DestinationRules): DestinationRefusal | undefined {
  const kind = addressKind(ip)
  if (kind === undefined) return 'not-literal'
  const isOwn = kind === 'loopback' || isOwnAddress(ip, rules)
  if (isOwn && port === rules.sourcePort) return 'source-port'
  if (port < PORT_MIN || port > 65_535) return 'low-port'
  if (REFLECTOR_PORTS.has(port)) return 'reflector-port'
  if (kind === 'loopback') return rules.allowLoopback ? undefined : 'loopback'
  if (kind === 'private') return rules.allowPrivate ? ownRefusal(ip, rules) : 'private'
  return kind === 'public' ? ownRefusal(ip, rules) : kind
}

function ownRefusal(ip: string, rules: DestinationRules): DestinationRefusal | undefined {
  return isOwnAddress(ip, rules) && !rules.allowLoopback ? 'own-address' : undefined
}

/** A destination of an earlier version is stored as it was typed. */
function isOwnAddress(ip: string, { ownAddresses }: DestinationRules): boolean {
  return ownAddresses.has(canonicalIp(ip))
}

/** The refusal as a sentence for the operator. */
export function refusalReason(refusal: DestinationRefusal): string {
  switch (refusal) {
    case 'not-literal':
      return 'it is not a literal address'
    case 'low-port':
      return `its port is below ${PORT_MIN}`
    case 'reflector-port':
      return 'its port belongs to a service that can be used for amplification attacks'
    case 'own-address':
      return 'it is an address of this machine'
    case 'source-port':
      return 'it is the port that the relay receives shreds on'
    case 'loopback':
      return 'it is a loopback address; shreds.destinations.allowLoopback = true allows those for development'
    case 'private':
      return 'it is in a private network; shreds.destinations.allowPrivate = true allows those'
    default:
      return `it is of the kind ${refusal}`
  }
}
