"""ShredStream Decoded with grpcio alone: some transactions by filter, then some batches of entries, each as a line of JSON.

SLUICE_GRPC is the address (default 127.0.0.1:10010) and SLUICE_TOKEN the token. The argument is the folder of the messages that protoc made.
"""
import json
import os
import queue
import struct
import sys

sys.path.insert(0, sys.argv[1])

import geyser_pb2  # noqa: E402
import grpc  # noqa: E402
import shredstream_pb2  # noqa: E402

SECONDS = 90
TRANSACTIONS = 40
BATCHES = 5


def show(**fields):
    print(json.dumps(fields), flush=True)


def deshred(channel, metadata):
    subscribe = channel.stream_stream(
        "/geyser.Geyser/SubscribeDeshred",
        request_serializer=geyser_pb2.SubscribeDeshredRequest.SerializeToString,
        response_deserializer=geyser_pb2.SubscribeUpdateDeshred.FromString,
    )
    requests = queue.Queue()
    first = geyser_pb2.SubscribeDeshredRequest()
    first.deshred_transactions["all"].SetInParent()
    first.slots["slots"].SetInParent()
    requests.put(first)
    seen = 0
    has_pong = False
    call = subscribe(iter(requests.get, None), metadata=metadata, timeout=SECONDS)
    for update in call:
        kind = update.WhichOneof("update_oneof")
        if kind == "pong":
            has_pong = True
            show(kind="pong", id=update.pong.id)
        elif kind == "slot":
            show(kind="slot", slot=update.slot.slot, filters=list(update.filters))
        elif kind == "deshred_transaction":
            info = update.deshred_transaction.transaction
            filters = list(update.filters)
            show(
                kind="transaction",
                slot=update.deshred_transaction.slot,
                filters=filters,
                signature=info.signature.hex(),
                is_vote=info.is_vote,
                keys=len(info.transaction.message.account_keys),
            )
            seen += 1
            if seen == 1:
                ping = geyser_pb2.SubscribeDeshredRequest()
                ping.ping.id = 7
                requests.put(ping)
            if seen == TRANSACTIONS:
                votes = geyser_pb2.SubscribeDeshredRequest()
                votes.deshred_transactions["votes"].vote = True
                requests.put(votes)
            if filters == ["votes"] and has_pong:
                break
    call.cancel()
    requests.put(None)


def entries(channel, metadata):
    subscribe = channel.unary_stream(
        "/shredstream.ShredstreamProxy/SubscribeEntries",
        request_serializer=shredstream_pb2.SubscribeEntriesRequest.SerializeToString,
        response_deserializer=shredstream_pb2.Entry.FromString,
    )
    call = subscribe(shredstream_pb2.SubscribeEntriesRequest(), metadata=metadata, timeout=SECONDS)
    left = BATCHES
    for batch in call:
        (count,) = struct.unpack_from("<Q", batch.entries, 0)
        hashes, digest, transactions = struct.unpack_from("<Q32sQ", batch.entries, 8)
        show(kind="entries", slot=batch.slot, count=count, hashes=hashes, digest=digest.hex(), transactions=transactions)
        left -= 1
        if left == 0:
            break
    call.cancel()


with grpc.insecure_channel(os.environ.get("SLUICE_GRPC", "127.0.0.1:10010")) as channel:
    metadata = (("x-token", os.environ["SLUICE_TOKEN"]),)
    deshred(channel, metadata)
    entries(channel, metadata)
    show(kind="done")
