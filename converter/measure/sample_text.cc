#include "converter/measure/sample_text.h"

namespace oxbow::convert {
namespace {

constexpr char kText[] =
    R"(The ferry had stopped running in October, so the only way across was the old iron bridge two miles
upstream. Nora walked it twice a week with a bag of letters on her shoulder. In summer people waved to her from the boats;
now there was nobody, only the brown water and, once, a heron that stood on one leg and did not care. She counted the planks
because somebody had told her as a child that the number changed. It never did. There were four hundred and twelve.

"You are late," said the man at the gate.
"The wind," she said. "It comes straight down the valley."
He took the letters, looked at the first one, and put it back into the bag without opening it. "That one is not for us. It
was never for us. Tell them so, please, when you see them."

Rivers carve loops into soft ground. The outer bank of a bend is worn away faster than the inner one, because the water moves
more quickly there, and so a small bend becomes a large one. After some centuries the neck between two bends is narrow; one
flood is enough to cut through it. The river takes the shorter way, and the loop stays behind as a curved lake. Such lakes
fill slowly with mud and reeds. From the air they look like the marks of a finger on a dusty table, and a geologist can read
from them where the stream has been and how long ago.

Question: A train leaves at 9:40 and arrives at 13:05. It stops three times for 4 minutes each. How long does it move?
Answer: From 9:40 to 13:05 are 3 hours and 25 minutes, that is 205 minutes. Three stops of 4 minutes take 12 minutes, so the
train moves for 205 - 12 = 193 minutes, or 3 hours and 13 minutes.

To make bread you need 500 g of flour, 350 ml of water, 10 g of salt and a little yeast. Mix everything, wait until the dough
has doubled, fold it, wait again, and bake it for 40 minutes at 230 degrees. Let it cool before you cut it, however good it
smells.

def mean(values):
    """Average of a list of numbers; None for an empty one."""
    if not values:
        return None
    total = 0.0
    for value in values:
        total += value
    return total / len(values)

for (size_t i = 0; i < count; ++i) {
  if (name[i] == '\0') break;
  hash = (hash ^ name[i]) * 16777619u;
}

Am Morgen lag Nebel über dem Hof, und die Hunde bellten, obwohl niemand kam. Der alte Müller hatte gesagt, dass man bei solchem
Wetter besser zu Hause bleibt; aber die Säcke mussten in die Stadt, und bezahlt wurde nur, was vor Mittag ankam. Also spannten
wir an. Nach einer Stunde sahen wir die Türme, und es war, als hätte jemand ein Tuch weggezogen.

Le marché se tenait chaque jeudi sur la place, entre l'église et la fontaine. On y vendait du fromage, des pommes, des couteaux
et parfois un cheval. Ma grand-mère disait qu'il fallait toujours acheter chez celui qui parlait le moins. « Les autres, tu les
paies aussi pour leurs histoires. »

La biblioteca cierra a las ocho, pero si llamas al timbre te abren. Detrás del mostrador hay una mujer que conoce todos los
libros y a casi todos los lectores. Me preguntó qué buscaba. Le dije que no lo sabía todavía, y ella sonrió: eso era, según
ella, la mejor manera de empezar.

Зимой река замерзала, и дорога в деревню становилась короче. Мы ездили прямо по льду, хотя мать каждый раз просила нас этого не
делать. Однажды лошадь остановилась и не пошла дальше. Отец молча повернул назад, а весной мы увидели, какой тонкий там был лёд.

O barco saiu cedo e voltou vazio, mas ninguém no porto ficou triste: a chuva, que faltava desde março, tinha enfim chegado.

村子里的人都说那口井很深，可是没有人量过。有一年夏天，雨一直不来，井水慢慢退下去，露出一块刻着字的石头。老师把字抄下来，
念给我们听：先挖井的人，不一定喝得到水。

駅前の小さな店で傘を買った。雨はもう止んでいたが、返すのも変なので、そのまま持って歩いた。次の日は朝から大雨で、私だけが
濡れずに学校へ着いた。

كان الطريق طويلا، لكن الجد لم يتعب من الكلام. حكى لنا عن مدينة كانت هنا قبل أن يغير النهر مجراه.

Minutes of the meeting, 14 March: present were seven members, two were excused. The accounts for the last year were read and
accepted. Mrs. Okafor reported that the roof over the reading room had been repaired for 3,480.50, some 12 % less than was
expected. Mr. Lindqvist asked whether the money that was saved could pay for new chairs. After some discussion it was decided,
by five votes to two, to wait until the heating had been looked at. The next meeting is on 11 April at half past six.

When the rain is over, go outside and listen. First there is only dripping. Then a single bird tries a few notes, as if it did
not trust the quiet, and another answers from the far side of the garden. Within a minute they all sing at once. Nobody knows
exactly why. One explanation is that the air carries sound better when it is still and damp; another, that the birds have lost
an hour and must tell each other again where everybody lives.
)";

}  // namespace

std::string sample_text() { return kText; }

}  // namespace oxbow::convert
