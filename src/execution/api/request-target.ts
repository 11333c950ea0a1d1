import type { IncomingMessage } from 'node:http'
import { splitTarget } from '../../platform/http/request-headers.ts'

/** Path and query of a request target; the host of an absolute-form target is ignored. */
export function requestTarget({ url }: Pick<IncomingMessage, 'url'>): { path: string; query: URLSearchParams } {
  const { path, query } = splitTarget(url)
  return { path, query: new URLSearchParams(query) }
}
