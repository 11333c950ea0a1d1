import type { Access } from '../../../access/service.ts'
import type { Upstreams } from '../../../upstreams/service.ts'

/** Hands the nodes that belong to single subscriptions from the access store to the pools, now and whenever it moves. */
export async function followDedicatedNodes(access: Access, upstreams: Upstreams): Promise<AsyncDisposable> {
  let settling = settle()
  await settling

  /** One after the other: a later change must not be overtaken by an earlier one. */
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
