import { type DocsUrl, ERRORS } from '../../../contract/errors.ts'
import { isLoopbackName } from '../../../contract/public-url.ts'
import type { StaticFile, StaticFiles } from '../../../platform/http/server/static-file.ts'
import type { Endpoints } from '../access/endpoints.ts'

/** The servers that serve the documents. */
export type DocumentServer = 'rpc' | 'execution'

export type Documents = {
  /** The files under `/docs`; none before `publish`. */
  readonly files: StaticFiles
  /** Page URLs for the errors of a server; that server itself is preferred if it serves documents. */
  docsUrlOf(server: DocumentServer | 'sender'): DocsUrl
  /**
   * Called when the addresses are known. `servers` are the addresses at which documents are served; they come from the configuration or from a loopback
   * listener, never from a request: a `Host` header would let a stranger choose where the links of an error lead.
   */
  publish(published: Published): Promise<Rendered>
  /** Takes what the control plane has published, in a thread. */
  adopt(rendered: Rendered): void
}

/** Published documents as they are posted to threads; the bytes of the files are shared memory. */
export type Rendered = Published & { readonly files: ReadonlyMap<string, StaticFile> }

export type Published = {
  readonly endpoints: Endpoints
  readonly servers: { readonly [server in DocumentServer]?: string | undefined }
  /** False in a process without such a server. */
  readonly isServedHere: boolean
}

/** The documents of a process: made before its servers, published when it is known where they listen. */
export function createDocuments(): Documents {
  let current: Rendered = { endpoints: { missing: [] }, servers: {}, isServedHere: false, files: new Map() }
  return {
    files: (path) => current.files.get(path),
    docsUrlOf(server) {
      const order = server === 'execution' ? (['execution', 'rpc'] as const) : (['rpc', 'execution'] as const)
      return (code) => {
        // A loopback address is of use to clients of a loopback listener; to others it would reveal an internal port.
        const { endpoints, servers } = current
        const isOwnLoopback = isLoopback(endpoints[server])
        const base = order.map((one) => servers[one]).find((url) => url && (isOwnLoopback || !isLoopback(url)))
        return base && `${base}/docs/errors/${Object.hasOwn(ERRORS, code) ? code : 'internal'}`
      }
    },
    async publish(published) {
      // The links of errors are right from now on; rendering takes a moment.
      current = { ...published, files: current.files }
      if (published.isServedHere) {
        // Loaded here: threads take the files that another thread has rendered.
        const { renderDocuments } = await import('./render-documents.ts')
        current = { ...published, files: await renderDocuments(published.endpoints) }
      }
      return current
    },
    adopt(rendered) {
      current = rendered
    },
  }
}

function isLoopback(url: string | undefined): boolean {
  return url !== undefined && isLoopbackName(new URL(url).hostname)
}
