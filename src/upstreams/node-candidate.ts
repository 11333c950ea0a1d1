import type { NodeCandidate, UpstreamNode } from './node.ts'

/** What a candidate reads of its endpoint. */
export type EndpointReadings = {
  readonly hasEndpoint: () => boolean
  readonly isRefusing: () => boolean
  readonly isSuspect: () => boolean
  readonly load: () => number
}

/** A class, so that V8 sees one shape wherever candidates are compared. */
export class EndpointCandidate implements NodeCandidate {
  readonly #nodeOf: () => UpstreamNode
  readonly #endpoint: EndpointReadings

  constructor(nodeOf: () => UpstreamNode, endpoint: EndpointReadings) {
    this.#nodeOf = nodeOf
    this.#endpoint = endpoint
  }

  get node(): UpstreamNode {
    return this.#nodeOf()
  }

  get isAvailable(): boolean {
    const { isDrained, breaker } = this.node
    return !isDrained && breaker.state === 'closed' && this.#endpoint.hasEndpoint()
  }

  get isUnresponsive(): boolean {
    return this.node.isSilent || this.#endpoint.isRefusing()
  }

  get isSuspect(): boolean {
    return this.#endpoint.isSuspect()
  }

  get isLagging(): boolean {
    return this.node.health.isLagging
  }

  get slot(): number {
    const { lagReason, slot } = this.node.health
    // A slot far above all others is not credible: it does not count as having reached the client's slot.
    return lagReason === 'ahead-of-all' ? 0 : slot
  }

  get load(): number {
    return this.#endpoint.load()
  }
}
