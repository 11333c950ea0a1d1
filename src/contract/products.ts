/** The products. Command line, store and config use the key. */
export const PRODUCTS = {
  bundle: {
    title: 'Bundle (RPC, WebSocket, gRPC)',
    authorization: 'token',
    provisioned: true,
    available: true,
  },
  indexer: {
    title: 'Indexer (SQL)',
    authorization: 'x-token plus database credentials',
    provisioned: true,
    available: true,
  },
  'shreds-raw': {
    title: 'ShredStream Raw (UDP)',
    authorization: 'destination address',
    provisioned: true,
    available: true,
  },
  'dedicated-node': {
    title: 'Dedicated Node',
    authorization: 'arranged individually at provisioning',
    provisioned: true,
    available: true,
  },
  sender: {
    title: 'TPU Sender',
    authorization: 'open access, tip required',
    provisioned: false,
    available: true,
  },
  'shreds-decoded': {
    title: 'ShredStream Decoded',
    authorization: 'to be confirmed',
    provisioned: true,
    available: false,
  },
  execution: {
    title: 'Execution service (8443)',
    authorization: 'open by default',
    provisioned: false,
    available: true,
  },
} as const satisfies Record<string, Product>

export type Product = {
  readonly title: string
  readonly authorization: string
  /** Whether a customer needs a subscription for it. */
  readonly provisioned: boolean
  /** False means *coming soon*: listed, but a subscription to it is refused. */
  readonly available: boolean
}

/** A subscription as a user of nodes: without the bundle it is served by its dedicated nodes or not at all. */
export type NodeUser = { readonly subscriptionId: string; readonly mayUseShared: boolean }

export type ProductKey = keyof typeof PRODUCTS

export const PRODUCT_KEYS = Object.keys(PRODUCTS) as ProductKey[]

export function isProductKey(text: string): text is ProductKey {
  return Object.hasOwn(PRODUCTS, text)
}
