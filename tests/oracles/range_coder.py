"""Integers and masks from bytes, by the words of docs/codec-entropy.md."""

import numpy as np

ONE = 1 << 12


def rounded(values):
    return np.rint(values).astype(int).tolist()


SQUASH = rounded(np.clip(65536 / (1 + np.exp(-np.arange(-3071, 3072) / 256)), 1, 65535))
STRETCH = rounded(256 * np.log((np.arange(4096) + 0.5) / (4095.5 - np.arange(4096))))
LOG = rounded(256 * np.log((np.arange(4096) + 8) / 256))
POWER = rounded(65536 * 2 ** (np.arange(16) / 16))


def clamp(x, low, high):
    return max(low, min(high, x))


def squash(x):
    return SQUASH[x + 3071]


def sign(x):
    return (x > 0) - (x < 0)


def with_sign(size, value):
    return -size if value < 0 else size


def scaled(value, s):
    y = (abs(value) * POWER[s & 15]) >> 16
    o = s >> 4
    return with_sign(min(y << min(o, 18), 1 << 44) if o >= 0 else y >> min(-o, 60), value)


def log(size):
    x, more = size >> 4, 0
    while x >= 4096:
        x, more = x >> 4, more + 710
    return more + LOG[x]


def level(x):
    return clamp((x + 887) // 89, 0, 23)


class Decoder:
    def __init__(self, data):
        self.data, self.place, self.range, self.code = bytes(data), 0, (1 << 32) - 1, 0
        for _ in range(4):
            self.read()

    def read(self):
        byte = self.data[self.place] if self.place < len(self.data) else 0
        self.code, self.place = (self.code << 8) | byte, self.place + 1

    def bit(self, p):
        ones = (self.range * p) >> 16
        bit = int(self.code < ones)
        self.code -= 0 if bit else ones
        self.range = ones if bit else self.range - ones
        while self.range < 1 << 24:
            self.range <<= 8
            self.read()
        return bit

    def end(self):
        assert self.place == len(self.data) + 3


class Slot:
    def __init__(self, p=32768):
        self.q, self.n = p << 6, 4

    def logit(self):
        return STRETCH[self.q >> 10]

    def p(self):
        return clamp(self.q >> 6, 1, 65535)

    def learn(self, bit):
        self.q += ((bit << 22) - bit - self.q) * (131072 // (2 * self.n + 3)) >> 16
        self.n = min(self.n + 1, 127)


class Slots(dict):
    """Slots that begin when they are first asked for, by a law of their names."""

    def __init__(self, first=lambda name: 32768):
        self.first = first

    def __missing__(self, name):
        self[name] = Slot(self.first(name))
        return self[name]


class Mixer:
    def __init__(self, weights, rate):
        self.weights, self.rate = list(weights), rate

    def mix(self, inputs):
        total = (1 << 15) + sum(x * w for x, w in zip(inputs, self.weights, strict=True))
        self.inputs, self.logit = inputs, clamp(total >> 16, -3071, 3071)
        return self.logit

    def learn(self, bit):
        change = ((bit << 16) - squash(self.logit)) * self.rate
        for t, x in enumerate(self.inputs):
            self.weights[t] += (x * change + (1 << 21)) >> 22


def first_of_size(name):
    kind, of, _ = name
    mean = {
        "near": lambda: log(sum(of) * ONE // 3),
        "levels": lambda: sum(of) * 89 // 2 - 843,
        "column": lambda: 0,
        "phase": lambda: 0,
    }[kind]()
    return squash(clamp(mean, -1500, 1500))


def decode_integers(data, coded, steps, slice_rows=0, lag=0):
    coded, steps = np.asarray(coded).tolist(), np.asarray(steps).tolist()
    n, m = len(coded), len(coded[0])
    for i in range(1, n):
        steps[i] = steps[i] if any(coded[i]) else steps[i - 1]
    slice_rows, lag = slice_rows if slice_rows < n else 0, lag if lag < n else 0
    period = slice_rows or lag or 1
    decoder = Decoder(data)
    slots, sign_slots, tails = Slots(first_of_size), Slots(), Slots()
    begin = [0, *[5041] * 7, *[0] * 4, *[5041] * 4]
    mixers, curves = {}, {}
    sign_mixer = Mixer([32768, *[0] * 15], 384)
    column = {name: [ONE] * m for name in ("fast", "slow", "actual", "usual")}
    column["mean"] = [0] * m
    cells = [[ONE] * m for _ in range(period)]
    cell_means = [[0] * m for _ in range(period)]
    cell_steps = [steps[0]] * period
    row_mean, usual_step = ONE, 256 * steps[0]
    values, k = [], np.zeros((n, m), np.int32)
    for i in range(n):

        def seen(t, i=i):
            row = [scaled(v, steps[t] - steps[i]) for v in values[t]] if i else [0] * m
            return [0, *row, 0]  # column j is at j + 1

        above = seen(i - 1)
        related = seen(i - slice_rows if 0 < slice_rows <= i else i - 1)
        further = seen(i - lag if 0 < lag <= i else max(i - 2, 0))
        if i:
            row_mean = scaled(row_mean, steps[i - 1] - steps[i])
            for name, row in column.items():
                column[name] = [scaled(v, steps[i - 1] - steps[i]) for v in row]
        phase = i % period
        cell = cells[phase] = [scaled(v, cell_steps[phase] - steps[i]) for v in cells[phase]]
        cell_mean = [scaled(v, cell_steps[phase] - steps[i]) for v in cell_means[phase]]
        cell_means[phase], cell_steps[phase] = cell_mean, steps[i]
        step_feature = clamp(((256 * steps[i] - usual_step) * 11) >> 8, -1000, 1000)
        usual_step += (256 * steps[i] - usual_step) >> 3
        last, row_sign, row_actual, row_usual = 0, 0, row_mean, row_mean
        x1 = x2 = x3 = row_mean
        total, count = 4 * row_mean, 4
        values.append([0] * m)
        for j in range(m):
            fast, slow = column["fast"][j], column["slow"][j]
            if not coded[i][j]:
                continue
            near = (2 * x1 + x2 + x3) >> 2
            around = [
                (abs(r[j]) + 2 * abs(r[j + 1]) + abs(r[j + 2])) >> 2
                for r in (above, related, further)
            ]
            expected = 2 * (near + fast + slow) + around[0] + around[1] + 4 * cell[j]
            expected //= 12
            shift = 0
            while expected >> shift >= 6 * ONE:
                shift += 1

            def shifted(x, shift=shift):
                return log(x >> shift)

            def signed(v):
                return with_sign((shifted(abs(v)) - LOG[0]) >> 2, v)

            here = [last, above[j + 1], related[j + 1], further[j + 1]]
            names = [tuple(map(sign, here)), ("column", j & 1023), ("phase", phase & 1023)]
            my_signs = [sign_slots[name] for name in names]
            there = [last, above[j + 1], above[j], related[j + 1], further[j + 1]]
            there += [row_sign, column["mean"][j], cell_mean[j]]
            s = sign_mixer.mix(
                [slot.logit() for slot in my_signs] + [signed(v) for v in there] + [0] * 5
            )
            features = [256, *map(shifted, (fast, slow, near, *around, cell[j]))]
            features.append(log(row_actual) - log(row_usual))
            features.append(log(column["actual"][j]) - log(column["usual"][j]))
            features += [step_feature, abs(s)]
            sizes = tuple(min(7, abs(v) >> (12 + shift)) for v in here[:3])
            contexts = [
                ("near", sizes),
                ("levels", (level(shifted(cell[j])), level(shifted(expected)))),
            ]
            contexts += [("column", j & 1023), ("phase", phase & 1023)]
            kinds = [("all", 0, 96), ("column", j & 1023, 160)]
            kinds += [("phase", phase & 1023, 160)] if period > 1 else []
            which = clamp(cell[j] >> (11 + shift), 0, 2) + (3 if related[j + 1] else 0)

            positive, t = 1, 0
            while t < 16:
                mine = [slots[kind, of, t] for kind, of in contexts]
                inputs = features + [slot.logit() for slot in mine]
                mixing = [
                    mixers.setdefault((kind, of, t), Mixer(begin, rate)) for kind, of, rate in kinds
                ]
                logit = sum(mixer.mix(inputs) for mixer in mixing) // len(mixing)
                curve = curves.setdefault(
                    (which, t), [squash(128 * (u - 16)) << 8 for u in range(33)]
                )
                y = clamp(logit, -2047, 2047) + 2048
                u, w = y >> 7, y & 127
                p = (curve[u] * (128 - w) + curve[u + 1] * w) >> 15
                bit = decoder.bit(clamp((squash(logit) + p) >> 1, 1, 65535))
                u += w >> 6
                curve[u] += ((bit << 24) - curve[u]) >> 6
                for learner in mixing + mine:
                    learner.learn(bit)
                if not bit:
                    break
                if t == 0:
                    positive = decoder.bit(squash(s))
                    for learner in [sign_mixer, *my_signs]:
                        learner.learn(positive)
                    features[11] = s if positive else -s
                t += 1

            size = 0
            if t:
                size, n_bits, known = t - 1, shift, 0
                if t == 16:
                    length, bit = 0, 1
                    while bit:
                        bit = decoder.bit(tails[length].p())
                        tails[length].learn(bit)
                        length += bit
                        assert length <= 30
                    size, n_bits, known = 1, shift + length, 14 << shift
                for _ in range(n_bits):
                    size = 2 * size + decoder.bit(32768)
                size += known + 1
                assert size <= 1 << 30
            k[i, j] = size if positive else -size
            value = int(k[i, j]) * ONE
            total, count = min(total + abs(value), 1 << 60), count + 1

            x = abs(value)
            values[i][j] = last = value
            x1, x2, x3 = x, x1, x2
            row_sign += (value - row_sign) >> 3
            row_actual += (x - row_actual) >> 4
            row_usual += (expected - row_usual) >> 4
            for name, to, by in [
                ("fast", x, 2), ("slow", x, 4), ("mean", value, 3), ("actual", x, 3),
                ("usual", cell[j], 3),
            ]:  # fmt: skip
                column[name][j] += (to - column[name][j]) >> by
            cell[j] += (x - cell[j]) >> 1
            cell_mean[j] += (value - cell_mean[j]) >> 1
        row_mean = total // count
    decoder.end()
    return k


def decode_bits(data, shape):
    n, m = shape
    decoder = Decoder(data)
    slots = Slots()
    mixers = [Mixer([0, *[17000] * 5], 192) for _ in range(8)]
    mask = np.zeros((n + 2, m + 4), int)  # row i is at i + 2, column j at j + 2
    column, runs = [0] * m, [0] * m
    same = [1, 1]
    for i in range(n):
        above2, above, this = mask[i].tolist(), mask[i + 1].tolist(), mask[i + 2]
        slot = slots["same", 2 * same[-2] + same[-1]]
        same.append(decoder.bit(slot.p()))
        slot.learn(same[-1])
        row, change, n_changes = 0, 0, 0
        for j in range(m):
            bit = above[j + 2]
            if not same[-1]:
                which = 2 * min(3, n_changes) + above[j + 2]
                names = [(above2[j + 2], row & 3, tuple(above[j + 1 : j + 5])), ("c", column[j])]
                names += [("r", row), ("run", change, min(15, runs[j].bit_length()), which)]
                names.append(("j", j & 1023, above[j + 2]))
                mine = [slots[name] for name in names]
                logit = mixers[which].mix([256] + [slot.logit() for slot in mine])
                bit = decoder.bit(squash(logit))
                for learner in [mixers[which], *mine]:
                    learner.learn(bit)
            this[j + 2] = bit
            change = bit ^ above[j + 2]
            n_changes += change
            runs[j] = 0 if change else runs[j] + 1
            row = (2 * row + bit) & 255
            column[j] = (2 * column[j] + bit) & 255
    decoder.end()
    return mask[2:, 2:-2]
