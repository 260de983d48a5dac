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

User: What should I pack for three days in the mountains in May?
Assistant: Nights are still cold in May, so take a warm sweater, a rain jacket and good shoes. Add a hat, sun cream, two bottles
for water, a small lamp and a map on paper. Tell somebody where you are going and when you will be back.
User: And what can I leave at home?
Assistant: The umbrella, the second pair of jeans and the thick book. You will be tired in the evening.

User: Explain in two sentences why the sky is blue.
Assistant: Sunlight contains all colours, and the molecules of the air scatter short waves, which we see as blue, far more than
long ones. So from every direction some blue light reaches our eyes, while the red light goes straight on.

User: Write a short poem about an old clock.
Assistant: Here is one:
The clock in the hall has forgotten the year,
it counts every second for no one to hear,
and when it strikes seven at quarter past three,
the cat looks up slowly, and then looks at me.

Q: Which is the largest planet of the solar system?
A: Jupiter. Its mass is more than twice that of all the other planets together.
Q: How many sides does a hexagon have?
A: A hexagon has six sides and six corners.
Q: What is the chemical symbol of iron?
A: Fe, from the Latin word ferrum.
Q: Who decides when a ship may leave the harbour?
A: The harbour master.

The five most common causes of a slow computer are: 1. too little memory, 2. a disk that is nearly full, 3. programs that start
by themselves, 4. an old browser with many extensions, and 5. dust in the fan. Try them in this order, because the first ones are
the cheapest to check.

Dear Ms. Hoang,
thank you for your letter of 3 June. We are sorry that the lamp arrived broken. A new one was sent today and should reach you on
Thursday; you need not send the old one back. If there is anything else we can do, please call us between 9 a.m. and 5 p.m.
Yours sincerely, Daniel Brandt

The museum was founded in 1874 by a merchant who had collected beetles all his life. After the fire of 1911 only the east wing was
rebuilt, and for forty years the collection was kept in boxes under the town hall. Today it holds some 60,000 insects, 2,300
minerals and the skeleton of a whale, which visitors remember best. Admission is free on the first Sunday of each month.

"Do you think he will come?" asked Ruth.
"He said so."
"He says many things." She put three plates on the table anyway, and then, after a moment, a fourth. Outside a dog began to bark.
Neither of them went to the window. It had been eleven years, and a few minutes more would make no difference now.

Scientists have found that some trees share water with their neighbours through fungi between their roots. In dry summers a birch
may give a young fir as much as a tenth of what it needs, and in winter, when the birch has no leaves, sugar flows the other way.
Whether this is help or only a leak is still a matter of debate. What is clear is that a forest is more than a number of trees.

The court held that the seller had known of the defect. A person who sells a house must tell the buyer what he could not see
for himself, unless the contract says otherwise in plain words. The appeal was therefore dismissed, and each party bears its own costs.

SELECT name, COUNT(*) AS orders FROM customers JOIN orders ON orders.customer = customers.id
WHERE orders.placed >= '2019-01-01' GROUP BY name HAVING COUNT(*) > 3 ORDER BY orders DESC LIMIT 10;

class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        if not self.items:
            raise IndexError("the stack is empty")
        return self.items.pop()

{"name": "tide-table", "version": "2.1.0", "private": true, "scripts": {"start": "node server.js", "test": "node test.js"}}

It was the last match of the season. The home side needed a point to stay up, and for eighty minutes it looked as if they would
get it. Then the visitors won a corner, the keeper slipped, and the smallest man on the field headed the ball into the empty net.
Nobody shouted. You could hear the referee's whistle as far as the station.

北京的秋天很短，但是很多人最喜欢这个季节。天气不冷也不热，公园里的树叶变成了黄色和红色，老人们早上在湖边打太极拳，孩子们放学
以后骑着自行车回家。我在那里住了四年，每到十月就会想起那条小街和街角卖糖葫芦的阿姨。

问：这个手机可以退货吗？答：收到商品七天之内可以退货，请保留发票和包装。如果有质量问题，运费由我们承担。问：多久能收到退款？
答：我们收到商品以后三个工作日之内退款。

研究人员发现，经常走路的人睡眠质量更好，记忆力也下降得比较慢。他们调查了两千多名六十岁以上的居民，记录了他们每天走路的时间和
睡眠的情况。专家建议，每天至少走三十分钟，最好和朋友一起走。

图书馆和博物馆每周一休息，其他时间免费开放。进馆请先预约，带好身份证，不要大声说话，也不要把饮料带到展厅里。老师可以为学生申请
团体参观，最多四十个人一组，由一位讲解员带领，大约需要一个半小时。

昨天晚上下了一场大雨，路上积了很多水，公共汽车开得很慢。小王从公司走到地铁站，鞋子全湿了。回到家，妻子已经做好了饭，女儿正在
写作业。他一边喝热汤一边说，明天一定要记得带伞。女儿笑了：爸爸每次都这么说。

这家餐厅的菜味道不错，价格也合理，就是周末人太多，要等很久。服务员态度很好，上菜也快。推荐他们的鱼和豆腐，甜点一般。下次还会来，
不过会选工作日的中午。

本公司成立于一九九八年，主要生产家用电器，产品销往三十多个国家。去年的销售收入增长了百分之十二，其中海外市场占一半以上。公司计划
在未来三年投资新的研究中心，并招聘五百名工程师。

如果电脑突然不能上网，先检查网线有没有插好，再重新启动路由器。还是不行的话，看看手机能不能连接。如果手机也不能，可能是线路的问题，
请联系运营商。

Die Bahn nach Norden fährt stündlich, sonntags nur alle zwei Stunden. Wer ein Fahrrad mitnehmen will, braucht eine eigene Karte
und sollte hinten einsteigen.

Il pleut depuis trois jours, et le jardinier ne s'en plaint pas: les salades poussent, les limaces aussi.

Si quieres aprender a cocinar, empieza por una tortilla: tres huevos, dos patatas, aceite, sal y paciencia.

Учитель спросил, кто знает, почему летом дни длиннее. Руку поднял только мальчик с последней парты.

オンライン会議は十時に始まります。資料は前の日までに送ってください。

회의는 오후 세 시에 시작합니다. 늦을 것 같으면 미리 전화해 주세요.
)";

}  // namespace

std::string sample_text() { return kText; }

}  // namespace oxbow::convert
