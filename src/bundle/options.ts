import { z } from 'zod'
import { listenerOption } from '../contract/listener-option.ts'

export const bundleOptions = z.strictObject({
  rpc: z
    .strictObject(listenerOption('127.0.0.1:8899'))
    .prefault({})
    .describe('JSON-RPC over HTTP: token in x-token, Authorization, x-api-key, or the query as api-key or api_key.'),
})

export type BundleOptions = z.output<typeof bundleOptions>
