import type { Caller } from '../../access/callers.ts'
import type { Limits } from '../../contract/limits.ts'
import type { ProductKey } from '../../contract/products.ts'

/** One endpoint. The server has checked token, method and body size before it calls `respond`. */
export type AccountEndpoint = {
  /** The product whose customers may use it; the bundle where it is missing. */
  readonly product?: ProductKey
  /** What one request takes of `PAGES_PER_SECOND`; one where it is missing. */
  readonly pages?: number
  /** False: the body is not read. */
  readonly takesBody: boolean
  /** The body limit under these limits; `requestBytes` where it is missing. */
  bodyBytesMax?(limits: Limits): number
  respond(caller: Caller, request: EndpointRequest): EndpointResponse | Promise<EndpointResponse>
}

export type EndpointRequest = {
  readonly body: Buffer
  readonly requestId: string
  /** The part of the target after `?`. */
  readonly query: string
  /** The header of that name. */
  readonly accept: string | undefined
}

/** An object is sent as JSON, a text as it is, with the content type of the headers. */
export type EndpointResponse = {
  readonly status: number
  readonly body: object | string
  readonly headers?: Readonly<Record<string, string>> | undefined
}
