/** Methods of geyser.Geyser with one request and one answer. Everything else may be a stream, so it needs a seat. */
export const GEYSER_UNARY = [
  'SubscribeReplayInfo',
  'Ping',
  'GetLatestBlockhash',
  'GetBlockHeight',
  'GetSlot',
  'IsBlockhashValid',
  'GetVersion',
] as const

/** Every method with a name of its own in metrics; one that is not here is forwarded all the same. */
export const GEYSER_METHODS = [...GEYSER_UNARY, 'Subscribe', 'SubscribeDeshred', 'SubscribeGossip'] as const
