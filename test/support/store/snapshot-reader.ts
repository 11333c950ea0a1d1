import { once } from 'node:events'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { type AccessSnapshot, type SharedSnapshot, Snapshot } from '../../../src/access/snapshot/snapshot.ts'

type Request = { readonly shared: SharedSnapshot } | { readonly again: number }
type Reading = { revision: number; found: ReturnType<AccessSnapshot['byDigest']>; customers: number }

/** A thread that reads the snapshots it is given, and keeps them. */
export function startSnapshotReader() {
  const worker = new Worker(new URL(import.meta.url))
  const ask = async (request: Request, sha256: string): Promise<Reading> => {
    worker.postMessage({ request, sha256 })
    const [reading] = (await once(worker, 'message')) as [Reading]
    return reading
  }
  return {
    read: (shared: SharedSnapshot, sha256: string) => ask({ shared }, sha256),
    readAgain: (again: number, sha256: string) => ask({ again }, sha256),
    async [Symbol.asyncDispose]() {
      await worker.terminate()
    },
  }
}

if (!isMainThread && parentPort !== null) {
  const port = parentPort
  const kept: AccessSnapshot[] = []
  port.on('message', ({ request, sha256 }: { request: Request; sha256: string }) => {
    if ('shared' in request) kept.push(Snapshot.fromShared(request.shared))
    const snapshot = kept.at('shared' in request ? -1 : request.again)
    port.postMessage({
      revision: snapshot?.revision,
      found: snapshot?.byDigest(sha256),
      customers: snapshot?.counts().customers,
    })
  })
}
