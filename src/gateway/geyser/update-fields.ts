/** Field numbers inside the kinds of SubscribeUpdate that belong to a slot (geyser.proto), by the field of the kind. */
export const UPDATE_FIELDS: Readonly<Record<number, { readonly slot: number; readonly bank: number }>> = {
  2: { slot: 2, bank: 4 },
  3: { slot: 1, bank: 5 },
  4: { slot: 2, bank: 3 },
  5: { slot: 1, bank: 14 },
  7: { slot: 1, bank: 10 },
  8: { slot: 1, bank: 7 },
  10: { slot: 1, bank: 6 },
  12: { slot: 1, bank: 2 },
}

/** The kind that reports the status of a slot, and its field of the status. */
export const SLOT_UPDATE = { kind: 3, status: 3 } as const
