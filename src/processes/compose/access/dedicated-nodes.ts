import type { Access } from '../../../access/call-access.ts'
import type { Upstreams } from '../../../upstreams/service.ts'

/** Keeps the dedicated nodes of the upstream pools in sync with the access store. */
export async function followDedicatedNodes(access: Access, upstreams: Upstreams): Promise<AsyncDisposable> {
  let settling = settle()
  await settling

  /** Serialized, so that changes apply in order. */
  async function settle(): Promise<void> {
    const owned = [...access.snapshot().nodes()].flatMap((node) =>
      node.subscriptionId === null ? [] : [{ ...node, subscriptionId: node.subscriptionId }],
    )
    await upstreams.setDedicated(owned)
  }
  const watching = access.onChange(() => {
    settling = settling.then(settle)
  })
  return {
    async [Symbol.asyncDispose]() {
      watching[Symbol.dispose]()
      await settling
    },
  }
}
