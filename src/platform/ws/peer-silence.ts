/** In beats, which all connections of a server have in common. */
export type WsHeartbeat = { readonly pingBeats: number; readonly silentBeatsMax: number }

/** Counts the beats since anything came from a peer, and since it was pinged. */
export class PeerSilence {
  #silentBeats = 0
  #beatsSincePing = 0

  heard(): void {
    this.#silentBeats = 0
  }

  /** Called at every beat. `dead` when nothing came for `silentBeatsMax` complete beats. */
  beat({ pingBeats, silentBeatsMax }: WsHeartbeat): 'dead' | 'ping-due' | undefined {
    this.#silentBeats += 1
    this.#beatsSincePing += 1
    if (this.#silentBeats > silentBeatsMax) return 'dead'
    if (this.#beatsSincePing < pingBeats) return undefined
    this.#beatsSincePing = 0
    return 'ping-due'
  }
}
