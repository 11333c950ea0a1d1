import type { ConnectionReport, Connections } from './connections.ts'

/** The open connections of customers that other gateway threads hold. */
export type OtherConnections = {
  of(subscriptionId: string): Promise<readonly ConnectionReport[]>
  close(subscriptionId: string, id: string): Promise<boolean>
}

/** Those of all threads of the process, oldest first. */
export type AllConnections = OtherConnections

export function allConnections(
  own: Pick<Connections, 'of' | 'close'>,
  others: OtherConnections | undefined,
): AllConnections {
  if (others === undefined) return { of: async (id) => own.of(id), close: async (owner, id) => own.close(owner, id) }
  return {
    async of(subscriptionId) {
      const found = [...own.of(subscriptionId), ...(await others.of(subscriptionId))]
      return found.sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0))
    },
    close: async (subscriptionId, id) => own.close(subscriptionId, id) || (await others.close(subscriptionId, id)),
  }
}
