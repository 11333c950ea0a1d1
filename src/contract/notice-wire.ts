/** A notice as its receivers get it. */
export type NoticeWire = {
  /** `ntc_` and a ULID. */
  readonly id: string
  /** Its kind: `node.down`. A newer process may have kinds that an older reader does not know. */
  readonly type: string
  readonly timestamp: string
  /** One sentence for a person. */
  readonly message: string
  /** The same for a program. */
  readonly data: Readonly<Record<string, string | number | null>>
}

/** A notice as the admin API and the command line list it. */
export type ListedNotice = NoticeWire & {
  readonly deliveries: readonly {
    readonly receiver: string
    readonly state: string
    readonly attempts: number
    readonly last_at: string | null
    readonly last_failure: string | null
  }[]
}
