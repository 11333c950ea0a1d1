/** The states of an upstream node, as operators see them. */
export const NODE_STATES = ['healthy', 'lagging', 'failing', 'drained'] as const
export type NodeState = (typeof NODE_STATES)[number]
