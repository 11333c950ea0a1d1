import type { IncomingMessage } from 'node:http'

/** Path and query of a request; the host of an absolute-form address is of no interest here. */
export function requestTarget({ url = '/' }: Pick<IncomingMessage, 'url'>): { path: string; query: URLSearchParams } {
  const target = url.startsWith('/') ? url : url.replace(/^[a-z]+:\/\/[^/?]*/i, '') || '/'
  const mark = target.indexOf('?')
  return {
    path: mark === -1 ? target : target.slice(0, mark),
    query: new URLSearchParams(mark === -1 ? '' : target.slice(mark + 1)),
  }
}
