import { printAddressPort } from '../../platform/net/ip-range.ts'
import { decodeBase58 } from '../../solana/crypto/base58.ts'

export type Leader = {
  readonly identity: string
  readonly ip: string
  readonly port: number
  /** `ip:port`, which several leaders have that announce the same relay. */
  readonly address: string
}

/** The nodes of the cluster with a TPU QUIC port. */
export type Contacts = {
  /** Undefined for a node that is not known, whose identity is no public key, or whose address is not allowed. */
  find(identity: string): Leader | undefined
  readonly size: number
}

const CONTACTS_MAX = 20_000

/**
 * Reads the response of getClusterNodes; undefined when it is none. Addresses are checked when they are needed: to check those of the thousands of nodes
 * of a cluster would hold the event loop for 0.1 s.
 */
export function readContacts(
  response: unknown,
  addressOf: (text: string) => { readonly ip: string; readonly port: number } | undefined,
): Contacts | undefined {
  if (!Array.isArray(response)) return undefined
  const texts = new Map<string, string>()
  for (const node of response.slice(0, CONTACTS_MAX)) {
    const { pubkey, tpuQuic } = (node ?? {}) as { pubkey?: unknown; tpuQuic?: unknown }
    if (typeof pubkey === 'string' && typeof tpuQuic === 'string') texts.set(pubkey, tpuQuic)
  }
  const checked = new Map<string, Leader | undefined>()
  return {
    find(identity) {
      const text = texts.get(identity)
      if (text === undefined || checked.has(identity)) return checked.get(identity)
      const address = addressOf(text)
      const leader =
        address === undefined || !isPublicKey(identity)
          ? undefined
          : { identity, ...address, address: printAddressPort(address.ip, address.port) }
      checked.set(identity, leader)
      return leader
    },
    size: texts.size,
  }
}

const KEY_BYTES = 32
const KEY_CHARS_MAX = 44

function isPublicKey(identity: string): boolean {
  try {
    return decodeBase58(identity, KEY_CHARS_MAX).length === KEY_BYTES
  } catch {
    return false
  }
}
